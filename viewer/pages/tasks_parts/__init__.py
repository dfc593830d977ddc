"""Parts of the page `tasks`."""
