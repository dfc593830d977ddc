"""What Streamlit executes, once per click.

It has a folder to itself because Streamlit puts the script's folder before Python's own modules on
the path, and takes a folder `pages/` beside the script for pages of another kind.
"""

from graphcredit.viewer.app import main

main()
