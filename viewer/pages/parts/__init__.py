"""Parts of the pages."""
