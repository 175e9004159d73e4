"""Runs inside training: records every rank with torch.profiler and keeps DDP's own facts. stdlib + torch only.

Importing this package does not import torch; building a `Collector` does, and says so if torch is missing.
"""

from __future__ import annotations

from rankscope.collector.collector import Collector
from rankscope.collector.own_profiler import on_trace_ready
from rankscope.collector.pushing import Push
from rankscope.collector.warning import RankscopeWarning

__all__ = ["Collector", "Push", "RankscopeWarning", "on_trace_ready"]
