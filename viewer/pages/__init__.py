"""One page per file: a function `show()` of widgets over the queries; `viewer/sitemap.py` lists them."""
