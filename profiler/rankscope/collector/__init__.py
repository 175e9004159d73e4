"""Runs inside training: records every rank with torch.profiler and keeps DDP's own facts. stdlib + torch only."""
