"""Where uploads wait on this machine."""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path


def default_spool(url: str) -> Path:
    """Inside a local store; for a remote one a folder of its own in the user's cache."""
    if "://" not in url:
        return Path(url) / "spool"
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "rankscope" / f"spool-{blake2b(url.encode(), digest_size=8).hexdigest()}"
