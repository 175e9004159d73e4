"""Ready-made synthetic runs; each states its answers by arithmetic on its own parameters."""
