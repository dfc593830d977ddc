"""The script that `streamlit run` is given, in a folder of its own."""
