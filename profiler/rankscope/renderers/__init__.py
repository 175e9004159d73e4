"""Report to text, one file per format; deterministic: no clock, no environment."""
