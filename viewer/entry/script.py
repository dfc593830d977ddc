"""The script that Streamlit executes at every interaction.

It is alone in its folder because Streamlit puts the script's folder first on `sys.path`, and treats
a folder `pages/` beside the script as a list of its own pages.
"""

from graphcredit.viewer.app import main

main()
