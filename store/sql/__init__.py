"""The store in SQL: views, the catalog, and a sandbox for untrusted queries."""
