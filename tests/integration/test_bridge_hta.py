"""HolisticTraceAnalysis over our tables gives what it gives over its own: its load of the same files is the judge."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rankscope.bridge_hta import HtaFaultError, explain_overlap, measure_critical_path, to_hta
from rankscope.errors import InputError, UsageError
from rankscope.pipeline import analyze_run, read_run
from rankscope.pipeline.keep import keep_run
from rankscope.store import Store, open_store
from support.command import work, write_run
from support.trace_text import collective, kernel, launch, nccl, step, write_ranks

pytest.importorskip("hta")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

# Small enough for HTA's own parser. param_dlrm: old names and whole microseconds; megatron: decimals, tensor
# parallel; straggler: a rank one second late.
SETS = ("torchrec_resnet18_2rank", "megatron_tp2_2rank", "param_dlrm_8rank", "torchrec_straggler_4rank")


def find_idle_time(analysis: Any, ranks: list[int]) -> pd.DataFrame:
    """The idle time by reason.

    HTA takes the first event of the file (index 0) for the launch of every kernel whose launch was not
    recorded; on param_dlrm that turns some "kernel wait" into "host wait". Here it has no such event to take.
    """
    kept = dict(analysis.t.traces)
    try:
        analysis.t.traces = {rank: frame[frame["index"] != 0] for rank, frame in kept.items()}
        found: pd.DataFrame = analysis.get_idle_time_breakdown(ranks=ranks, visualize=False)[0]
    finally:
        analysis.t.traces = kept
    return found


def sorted_frames(frames: dict[int, pd.DataFrame]) -> pd.DataFrame:
    """Frames by rank as one, whatever the order of their rows."""
    parts = [frame.sort_values(list(frame.columns)).reset_index(drop=True) for frame in frames.values()]
    return pd.concat(parts, keys=frames.keys())


ANALYSES: dict[str, Callable[[Any, list[int]], Any]] = {
    "overlap": lambda a, _ranks: a.get_comm_comp_overlap(visualize=False),
    "temporal breakdown": lambda a, _ranks: a.get_temporal_breakdown(visualize=False),
    "idle time breakdown": find_idle_time,
    "kernel types": lambda a, _ranks: a.get_gpu_kernel_breakdown(visualize=False)[0],
    "kernels": lambda a, _ranks: a.get_gpu_kernel_breakdown(visualize=False)[1],
    "launches": lambda a, ranks: sorted_frames(a.get_cuda_kernel_launch_stats(ranks=ranks, visualize=False)),
    "queue length": lambda a, ranks: a.get_queue_length_summary(ranks=ranks),
}


@cache
def load_with_hta(folder: Path, include_last_step: bool) -> Any:
    """HTA's own load of the files."""
    from hta.common.trace import Trace
    from hta.trace_analysis import TraceAnalysis

    files = {window.rank: str(folder / window.file) for window in read_run(folder).windows}
    trace = Trace(trace_files=files)
    trace.load_traces(include_last_step, use_multiprocessing=False, use_memory_profiling=False)
    analysis = TraceAnalysis.__new__(TraceAnalysis)
    analysis.t = trace
    return analysis


@cache
def load_with_ours(folder: Path, include_last_step: bool) -> Any:
    return to_hta(read_run(folder), include_last_profiler_step=include_last_step)


def result_of(analyse: Callable[[Any, list[int]], Any], loaded: Any) -> Any:
    """The result, or the kind of fault where HTA cannot do it on this trace at all."""
    try:
        return analyse(loaded, sorted(loaded.t.traces))
    except (KeyError, ValueError, AssertionError, ZeroDivisionError, IndexError) as fault:
        return type(fault)


@pytest.mark.parametrize(
    ("name", "include_last_step"), [*((name, False) for name in SETS), ("megatron_tp2_2rank", True)]
)
@pytest.mark.parametrize("analysis", ANALYSES)
def test_equal_results(shared_traces: Path, name: str, include_last_step: bool, analysis: str) -> None:
    theirs = result_of(ANALYSES[analysis], load_with_hta(shared_traces / name, include_last_step))
    ours = result_of(ANALYSES[analysis], load_with_ours(shared_traces / name, include_last_step))
    if isinstance(theirs, type):
        assert ours is theirs
        return
    pd.testing.assert_frame_equal(ours, theirs, check_dtype=False, check_index_type=False)


def test_the_critical_path_is_found(shared_traces: Path) -> None:
    folder = shared_traces / "megatron_tp2_2rank"
    lengths = []
    for loaded in (load_with_hta(folder, True), load_with_ours(folder, True)):
        graph, is_found = loaded.critical_path_analysis(rank=0, annotation="ProfilerStep", instance_id=0)
        assert is_found
        lengths.append(sum(graph.edges[edge]["weight"] for edge in zip(*_steps(graph), strict=True)))
    assert lengths[0] == lengths[1]


def _steps(graph: Any) -> tuple[list[int], list[int]]:
    nodes = list(graph.critical_path_nodes)
    return nodes[:-1], nodes[1:]


def test_a_run_out_of_the_store_gives_the_same(tmp_path: Path, shared_traces: Path) -> None:
    store: Store = open_store(tmp_path / "store")
    folder = shared_traces / "torchrec_resnet18_2rank"
    kept = to_hta(store.run(keep_run(store, folder).run_id))
    for analyse in ANALYSES.values():
        expected = result_of(analyse, load_with_ours(folder, False))
        pd.testing.assert_frame_equal(result_of(analyse, kept), expected)


def test_exact_keeps_the_nanoseconds(shared_traces: Path) -> None:
    """HTA's parser, and so we unless asked, rounds every event inwards to whole microseconds."""
    folder = shared_traces / "nanogpt_h100_8rank"
    (window,) = [window for window in read_run(folder).windows if window.rank == 0]
    run = replace(read_run(folder), windows=(window,))
    rounded, exact = (to_hta(run, exact=choice).t.traces[0] for choice in (False, True))
    assert (rounded["ts"] % 1 == 0).all()
    assert (exact["dur"] % 1 > 0).any()


def test_times_by_hand(tmp_path: Path) -> None:
    """Steps begin at 400, 500 and 600 us; each has a kernel of 50 us and an all-reduce of 60, 23 of it hidden."""
    analysis = to_hta(read_run(write_run(tmp_path / "run")), include_last_profiler_step=True)
    overlap = analysis.get_comm_comp_overlap(visualize=False)
    assert overlap["comp_comm_overlap_pctg"].tolist() == [round(100 * 23 / 60, 2)] * 2
    breakdown = analysis.get_temporal_breakdown(visualize=False)
    # Kernels run in [403, 690); idle from 490 to 503 and from 590 to 603.
    assert breakdown["kernel_time(us)"].tolist() == [287, 287]
    assert breakdown["idle_time(us)"].tolist() == [26, 26]
    assert breakdown["compute_time(us)"].tolist() == [150, 150]
    assert sorted(analysis.t.get_iterations(0)) == [4, 5, 6]


def test_what_makes_the_overlap_differ_by_hand(tmp_path: Path) -> None:
    """Hidden are 23 of 60 us in step 4, 0 of 30 in step 5, 10 of 20 in kernels without a launch.

    Ours is 33 / 110. HTA takes step 4 alone, 23 / 60; with the last step 23 / 90.
    """
    (tmp_path / "run").mkdir()
    args = collective("allreduce", 8, 8, group="0", ranks="[0, 1]", size=2)
    last = [step(5, 500, 100), launch(50, 501), launch(51, 502), kernel("gemm", 503, 50, correlation=50)]
    last += [nccl(560, 30, correlation=51, args=args)]
    unlaunched = [kernel("gemm", 300, 20, correlation=1), nccl(310, 20, correlation=2, args=args)]
    events = [*unlaunched, *work(4), *last]
    run = read_run(write_ranks(tmp_path / "run", {0: events, 1: events}))
    for row in explain_overlap(run, analyze_run(run)):
        assert row.ours == pytest.approx(33 / 110)
        assert row.theirs == pytest.approx(23 / 60, abs=1e-4)  # HTA rounds to 0.01 %
        assert row.last_step == pytest.approx(23 / 90 - 23 / 60, abs=2e-4)
        assert row.whole_microseconds == pytest.approx(0, abs=1e-4)
        assert row.unknown_launch == pytest.approx(33 / 110 - 23 / 90, abs=1e-4)


def test_the_rounding_to_microseconds_is_told_apart(shared_traces: Path) -> None:
    """These kernels have nanoseconds, and HTA's own load of them, which rounds, is the judge."""
    folder = shared_traces / "megatron_tp2_2rank"
    run = read_run(folder)
    rounded = load_with_hta(folder, True).get_comm_comp_overlap(visualize=False).set_index("rank")
    exact = to_hta(run, include_last_profiler_step=True, exact=True).get_comm_comp_overlap(visualize=False)
    shares = exact.set_index("rank")["comp_comm_overlap_pctg"] - rounded["comp_comm_overlap_pctg"]
    assert (shares != 0).any()
    for row in explain_overlap(run, analyze_run(run)):
        assert row.whole_microseconds == pytest.approx(shares[row.rank] / 100, abs=1e-9)


def test_a_path_through_a_step_that_is_not_there_is_refused(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run"))
    with pytest.raises(HtaFaultError, match="HTA gave up"):
        measure_critical_path(run, rank=0, step=9)


def test_the_parts_of_the_critical_path_make_it(tmp_path: Path) -> None:
    parts = measure_critical_path(read_run(write_run(tmp_path / "run")), rank=0, step=0)
    assert sum(part.share for part in parts) == pytest.approx(1)
    assert [part.time_ns for part in parts] == sorted((part.time_ns for part in parts), reverse=True)
    # From the first launch of step 4 at 401 us to the end of its all-reduce at 490 us.
    assert sum(part.time_ns for part in parts) == 89_000


def test_a_window_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="window 3"):
        to_hta(read_run(write_run(tmp_path / "run")), window=3)


def test_without_hta_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hta.common.trace", None)
    with pytest.raises(UsageError, match=r"rankscope\[hta\]"):
        to_hta(read_run(write_run(tmp_path / "run")))
