"""The data that rankscope works on, and arithmetic over it; no files, no text."""
