"""Parts of the page `graph`."""
