"""The entry points for Streamlit, alone in a folder that Streamlit puts on `sys.path`."""
