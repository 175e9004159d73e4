"""Where runs are kept: an fsspec URL, written atomically."""
