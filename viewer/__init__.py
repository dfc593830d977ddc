"""Looking at a store: pictures and, later, pages."""
