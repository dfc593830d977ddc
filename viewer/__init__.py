"""The viewer: a Streamlit app that shows a store, and exports of its pages."""
