"""A run as HTA's own tables hold it, without HTA's parser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankscope.errors import InputError, UsageError
from rankscope.model.categories import Category
from rankscope.model.intervals import Int64
from rankscope.model.run import Run, TraceWindow
from rankscope.model.table import NO_ID, TraceTable
from rankscope.units import NS_PER_S, NS_PER_US

if TYPE_CHECKING:
    from hta.trace_analysis import TraceAnalysis

_CATEGORY_TEXTS = {
    Category.OTHER: "other",
    Category.KERNEL: "kernel",
    Category.MEMCPY: "gpu_memcpy",
    Category.MEMSET: "gpu_memset",
    Category.CPU_OP: "cpu_op",
    Category.RUNTIME: "cuda_runtime",
    Category.USER_ANNOTATION: "user_annotation",
    Category.GPU_ANNOTATION: "gpu_user_annotation",
    Category.SYNC: "cuda_sync",
}
_STEP_NAME = "ProfilerStep"
# Columns that HTA's analyses expect, with what its parser puts where a trace does not say.
_ABSENT_ARGUMENTS: dict[str, Any] = {
    "bytes": -1,
    "memory_bw_gbps": 0.0,
    "wait_on_stream": -1,
    "wait_on_cuda_event_record_corr_id": -1,
    "input_dims": "-1",
    "input_type": "-1",
    "input_strides": "-1",
}
_BASE_PERIOD_NS = 7_889_238 * NS_PER_S
"""Kineto counts times from the start of such a period (torch >= 2.4)."""


def to_hta(
    run: Run, *, window: int = 0, include_last_profiler_step: bool = False, exact: bool = False
) -> TraceAnalysis:
    """An `hta` TraceAnalysis of a run.

    Args:
        run: a run that has been read, or came out of a store.
        window: which recorded window of each rank; ranks without it are left out.
        include_last_profiler_step: as HTA's own option of that name: whether to keep the last step.
        exact: keep nanoseconds. HTA's parser rounds each event inwards to whole microseconds, and so does this
            unless asked not to, to give the very figures that HTA gives.

    Raises:
        UsageError: `hta` is not installed.
        InputError: no rank has such a window.
    """
    try:
        from hta.common.trace import Trace
        from hta.trace_analysis import TraceAnalysis
    except ImportError as error:
        raise UsageError(
            f"HolisticTraceAnalysis cannot be imported ({error}); install it with `pip install 'rankscope[hta]'`"
        ) from error
    windows = [found for found in run.windows if found.window == window and len(found.table)]
    if not windows:
        raise InputError(
            f"no rank of {run.name} has events in a window {window}; windows are numbered from 0"
        )
    trace = Trace(trace_files={})
    bases = {found.rank: _base_ns(found.table) for found in windows}
    for found in windows:
        trace.symbol_table.add_symbols([*_CATEGORY_TEXTS.values(), *found.table.names])
        trace.meta_data[found.rank] = {"baseTimeNanoseconds": bases[found.rank]}
        times = _times(found.table, bases[found.rank], min(bases.values()), exact=exact)
        trace.traces[found.rank] = _frame(found, times, trace.symbol_table)
    trace.align_and_filter_trace(include_last_profiler_step)
    for rank, frame in trace.traces.items():
        trace.traces[rank] = frame.set_index("index", drop=False).rename_axis(None)
    trace.is_parsed = True
    analysis = TraceAnalysis.__new__(TraceAnalysis)  # its constructor can only parse files
    analysis.t = trace
    return analysis


def _base_ns(table: TraceTable) -> int:
    """What Kineto took off the times before it wrote them; 0 for traces in whole microseconds."""
    if not (table.start_ns % NS_PER_US).any() and not (table.duration_ns % NS_PER_US).any():
        return 0
    return int(table.start_ns[0]) // _BASE_PERIOD_NS * _BASE_PERIOD_NS


def _times(table: TraceTable, base_ns: int, origin_ns: int, *, exact: bool) -> dict[str, Any]:
    """Start, duration and end in microseconds from the origin, with HTA's rounding unless `exact`."""
    shift_us = (base_ns - origin_ns) // NS_PER_US
    starts, durations = _microseconds(table.start_ns - base_ns), _microseconds(table.duration_ns)
    if exact:
        return {"ts": starts + shift_us, "dur": durations, "end": starts + durations + shift_us}
    # The sum of floats, as HTA forms it, so that the last digit falls on the same side.
    first = np.ceil(starts).astype(np.int64) + shift_us
    last = np.floor(starts + durations).astype(np.int64) + shift_us
    return {"ts": first, "dur": last - first, "end": last}


def _microseconds(times_ns: Int64) -> npt.NDArray[np.float64]:
    """The times as the file has them. Since the epoch there are too many nanoseconds for a float."""
    if not (times_ns % NS_PER_US).any():
        return (times_ns // NS_PER_US).astype(np.float64)
    exact: npt.NDArray[np.float64] = times_ns / NS_PER_US
    return exact


def _frame(window: TraceWindow, times: dict[str, Any], symbols: Any) -> pd.DataFrame:  # noqa: ANN401
    """The events of a window as HTA holds them."""
    from hta.common.trace import transform_correlation_to_index

    table, ids = window.table, symbols.get_sym_id_map()
    lanes = pd.DataFrame(
        {
            "pid": [lane.pid for lane in table.lanes],
            "tid": [lane.tid for lane in table.lanes],
            "stream": [_stream_number(lane.stream, lane.device, lane.tid) for lane in table.lanes],
        }
    ).iloc[table.lane]
    names = np.array([ids[name] for name in table.names], np.int64)
    categories = np.array([ids[_CATEGORY_TEXTS[category]] for category in Category], np.int64)
    frame = pd.DataFrame(
        {
            # From 1: to HTA an index of 0 means that there is no such event.
            "index": np.arange(1, len(table) + 1),
            "cat": categories[table.category],
            "name": names[table.name],
            "pid": lanes["pid"].to_numpy(),
            "tid": lanes["tid"].to_numpy(),
            "ts": times["ts"],
            "dur": times["dur"],
            # Annotations drawn on a stream are no work of it, and carry no stream in the files.
            "stream": np.where(table.category == Category.GPU_ANNOTATION, NO_ID, lanes["stream"].to_numpy()),
            "correlation": _correlations(table),
            "external_id": table.external_id,
            **_ABSENT_ARGUMENTS,
        },
        index=np.arange(1, len(table) + 1),
    )
    frame = pd.DataFrame(transform_correlation_to_index(frame, symbols))
    frame["iteration"] = _iterations(frame, table)
    frame["end"] = times["end"]
    return frame


def _stream_number(stream: int | None, device: int | None, tid: int | str) -> int:
    """The stream as HTA reads it: -1 on the host and where it is no number."""
    if device is None:
        return -1
    if stream is not None:
        return stream
    text = str(tid).removeprefix("stream ")
    return int(text) if text.isascii() and text.isdigit() else -1


def _correlations(table: TraceTable) -> Int64:
    """Correlation ids of device rows and of what launches them: others carry none in the files."""
    carries = np.isin(
        table.category,
        [Category.KERNEL, Category.MEMCPY, Category.MEMSET, Category.RUNTIME, Category.SYNC, Category.OTHER],
    )
    found: Int64 = np.where(carries, table.correlation, NO_ID)
    return found


def _iterations(frame: pd.DataFrame, table: TraceTable) -> Int64:
    """Step number of each event: by time on the host, by its launch on the device; -1 outside steps."""
    starts = frame["ts"].to_numpy()
    iteration = np.full(len(table), -1, np.int64)
    for row, number in _steps(table):
        begin = starts[row]
        inside = (starts >= begin) & (starts < begin + frame["dur"].iloc[row])
        iteration[inside] = number
    links = frame["index_correlation"].to_numpy()
    of_launch = np.where(links > 0, iteration[np.maximum(links, 1) - 1], -1)
    found: Int64 = np.where(frame["stream"].to_numpy() < 0, iteration, of_launch)
    return found


def _steps(table: TraceTable) -> list[tuple[int, int]]:
    """(row, number) of each step marker, in order of time."""
    numbers = {}
    for index, name in enumerate(table.names):
        text = name.removeprefix(_STEP_NAME).strip(" #") if name.startswith(_STEP_NAME) else ""
        if text.isascii() and text.isdigit():
            numbers[index] = int(text)
    rows = np.flatnonzero(np.isin(table.name, list(numbers)))
    return [(int(row), numbers[int(table.name[row])]) for row in rows]
