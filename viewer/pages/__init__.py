"""The pages, one file each: a function `show()`; `viewer/sitemap.py` lists them.

What only one page has is in `parts/`.
"""
