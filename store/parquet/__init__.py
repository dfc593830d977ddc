"""The Parquet files of a store: reading, exporting, and reading while others replace them."""
