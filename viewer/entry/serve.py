"""The ASGI application for `streamlit run`: the viewer behind its middleware."""

from pathlib import Path

from starlette.middleware import Middleware
from streamlit.starlette import App

from graphcredit.viewer.origin import OwnOrigin

app = App(Path(__file__).with_name("script.py"), middleware=[Middleware(OwnOrigin)])
