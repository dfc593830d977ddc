"""What Streamlit is given to serve and to run, in a folder of its own."""
