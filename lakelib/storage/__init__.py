"""The only place with file I/O: stores, paths, Parquet files."""
