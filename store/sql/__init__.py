"""The store in SQL: views, the catalog, and a sandbox for queries from strangers."""
