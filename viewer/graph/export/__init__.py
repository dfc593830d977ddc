"""A graph as one HTML file, or as a page of a site."""
