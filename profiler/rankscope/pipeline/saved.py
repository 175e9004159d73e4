"""What commands of the gate take in place of traces: a saved report, or a baseline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from rankscope import __version__
from rankscope.analyses.kernel_totals import total_kernels
from rankscope.correlate.device_events import device_events
from rankscope.errors import InputError
from rankscope.gate.baseline import read_baseline
from rankscope.gate.snapshot import list_parts, take_snapshot
from rankscope.model.report import REPORT_NAME, Report
from rankscope.model.run import Run
from rankscope.model.snapshot import BASELINE_NAME, Baseline
from rankscope.readers.discovery import TraceSource, find_traces
from rankscope.renderers.to_json import read_json

_MOST_BYTES = 1 << 30
_HEAD_BYTES = 4096
_SMALL_BYTES = 16 << 20


class _Head(msgspec.Struct):
    format: Any = None


def read_saved(run: str) -> Report | Baseline | None:
    """The report or baseline in a file; None if it is something else: traces, most likely.

    Args:
        run: path or fsspec URL.

    Raises:
        FormatVersionError: it was written in another major version.
        InputError: it says that it is one, but cannot be read as such; or it does not exist.
    """
    sources = find_traces(run)
    if len(sources) != 1 or Path(run).is_dir():
        return None
    text = _read_text(sources[0])
    if text is None:
        return None
    name = _name_format(text)
    if name == REPORT_NAME:
        return read_json(text)
    return read_baseline(text) if name == BASELINE_NAME else None


def _read_text(source: TraceSource) -> bytes | None:
    """The text of a file that may be a report or a baseline; None if its beginning is that of a trace."""
    try:
        with source.open() as file:
            head = file.read(_HEAD_BYTES)
            # Keys may have been sorted: then the name stands further down.
            is_small = source.size_bytes <= _SMALL_BYTES and b'"traceEvents"' not in head
            if _names_format(head) or (is_small and head.lstrip().startswith(b"{")):
                text = head + file.read(_MOST_BYTES)
                return text if _names_format(text) else None
    except OSError as error:
        raise InputError(f"cannot read {source.location}: {error.strerror or error}") from error
    return None


def _names_format(text: bytes) -> bool:
    return REPORT_NAME.encode() in text or BASELINE_NAME.encode() in text


def _name_format(text: bytes) -> object:
    """Name of the format of a JSON text; None if it has none, or is no JSON."""
    try:
        found = msgspec.json.decode(text, type=_Head).format
    except (msgspec.DecodeError, UnicodeError):
        return None
    return found.get("name") if isinstance(found, dict) else None


def take_baseline(run: Run, report: Report) -> Baseline:
    """What is kept of a run to compare it with others, kernels included.

    Args:
        run: the run.
        report: its report.
    """
    kernels = total_kernels(device_events(run))
    return Baseline(tool_version=__version__, runs=[take_snapshot(report)], parts=list_parts(report, kernels))


def baseline_of_report(report: Report) -> Baseline:
    """What is kept of a saved report to compare it with others; it knows no kernels."""
    return Baseline(tool_version=report.tool.version, runs=[take_snapshot(report)], parts=list_parts(report))
