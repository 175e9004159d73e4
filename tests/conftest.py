"""What all tests share: where the real traces and the cases lie."""

from __future__ import annotations

import signal
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


def pytest_configure() -> None:
    """Let commands that tests start be interrupted: a shell starts what runs in the background with SIGINT ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
