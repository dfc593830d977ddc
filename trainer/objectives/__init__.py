"""Policy objectives, one file each; `trainer/table.py` is the table of all of them."""
