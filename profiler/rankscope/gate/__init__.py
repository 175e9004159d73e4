"""Report and limits to a verdict."""
