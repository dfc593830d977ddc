"""The Parquet files of a store: how they are read, exported, and read while others replace them."""
