"""Parts of the page `trajectory`."""
