"""The network model and the bucket_cap_mb simulator."""
