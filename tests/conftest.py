"""What all tests share: where the real traces and the cases lie."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"


@pytest.fixture(scope="session")
def shared_traces() -> Path:
    """Folder of real traces with known answers; skips where it is absent."""
    folder = SHARED / "traces"
    if not folder.is_dir():
        pytest.skip(
            "../shared/traces is not here: real traces with known answers are not part of the repository"
        )
    return folder
