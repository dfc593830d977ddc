"""One page per file: a function `show()` of widgets over the queries; `sitemap.py` lists them."""
