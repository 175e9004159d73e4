"""Records the gloo runs of sample_traces anew, and works out the answers in their `expected.json`.

    python sample_traces/record_gloo.py [DIRECTORY]      record both runs below DIRECTORY, with their answers
    python sample_traces/record_gloo.py --answers RUN    work out the answers of a recorded run, print them

The answers come from the JSON by plain arithmetic on whole numbers, one interval at a time: nothing here uses
rankscope's own readers or analyses.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

_EXPECTED = "expected.json"
_CAPS_MB = (1, 25)
_STEPS = 6
Interval = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One complete event: name, category, thread, start and end in ns since the Unix epoch, arguments."""

    name: str
    category: str
    thread: tuple[Any, Any]
    start: int
    end: int
    arguments: dict[str, Any]

    @property
    def interval(self) -> Interval:
        """Start and end."""
        return self.start, self.end


def read_rows(file: Path) -> tuple[dict[str, Any], list[Row]]:
    """The trace of one rank without its events, and its complete events by start."""
    # Microseconds with three decimals are exact in Decimal, not in a float.
    trace = json.loads(gzip.decompress(file.read_bytes()), parse_float=Decimal)
    base = int(trace.get("baseTimeNanoseconds", 0))
    rows = []
    for event in trace.pop("traceEvents"):
        if event.get("ph") == "X":
            start = base + int(Decimal(event["ts"]) * 1000)
            rows.append(
                Row(
                    name=event["name"],
                    category=str(event.get("cat")),
                    thread=(event["pid"], event["tid"]),
                    start=start,
                    end=start + int(Decimal(event["dur"]) * 1000),
                    arguments=event.get("args", {}),
                )
            )
    return trace, sorted(rows, key=lambda row: (row.start, -row.end))


def merge(intervals: Iterable[Interval]) -> list[Interval]:
    """The union, as intervals that do not touch."""
    merged: list[list[int]] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return [(start, end) for start, end in merged]


def length(intervals: Iterable[Interval]) -> int:
    """Total length of intervals that do not overlap."""
    return sum(end - start for start, end in intervals)


def common(left: Sequence[Interval], right: Sequence[Interval]) -> int:
    """Length of what two unions share."""
    return sum(max(min(a[1], b[1]) - max(a[0], b[0]), 0) for a in left for b in right if a[0] < b[1])


def find_compute(rows: Sequence[Row]) -> list[Interval]:
    """Union of the host operators that lie in no other operator of their thread."""
    reach: dict[tuple[Any, Any], int] = {}
    outermost = []
    for row in rows:
        if row.category == "cpu_op":
            before = reach.get(row.thread)
            if before is None or row.start >= before or row.end > before:
                outermost.append(row.interval)
            reach[row.thread] = max(before or 0, row.end)
    return merge(outermost)


def measure(communications: Sequence[Row], compute: Sequence[Interval]) -> dict[str, int]:
    """Union figures of some communications against all compute of the rank, in ns."""
    union = merge(row.interval for row in communications)
    overlap = common(union, compute)
    return {
        "communication_ns": length(union),
        "overlap_ns": overlap,
        "exposed_communication_ns": length(union) - overlap,
        "communication_self_overlap_ns": find_self_overlap(communications),
    }


def find_self_overlap(communications: Sequence[Row]) -> int:
    """Time in which at least two communications run."""
    edges = sorted([(row.start, 1) for row in communications] + [(row.end, -1) for row in communications])
    total = running = last = 0
    for time, change in edges:
        total += time - last if running > 1 else 0
        running, last = running + change, time
    return total


def answer_rank(rows: Sequence[Row]) -> dict[str, Any]:
    """The figures of the whole file, and those of each step."""
    communications = [row for row in rows if row.name.startswith("gloo:")]
    compute = find_compute(rows)
    seen = [row.interval for row in communications] + list(compute)
    window = max(end for _, end in seen) - min(start for start, _ in seen)
    whole = measure(communications, compute)
    idle = window - length(compute) - whole["exposed_communication_ns"]
    steps = {}
    for marker in rows:
        if marker.name.startswith("ProfilerStep#"):
            mine = [row for row in communications if marker.start <= row.start < marker.end]
            requests = [
                row
                for row in rows
                if row.name == "c10d::allreduce_" and marker.start <= row.start < marker.end
            ]
            steps[marker.name.partition("#")[2]] = {
                **measure(mine, compute),
                "duration_ns": marker.end - marker.start,
                "bucket_elements": [row.arguments["Input Dims"][0][0][0] for row in requests],
            }
    return {
        "whole": {"compute_ns": length(compute), **whole, "window_ns": window, "idle_ns": idle},
        "steps": steps,
        "operations": len(communications),
    }


def answer_run(folder: Path) -> dict[str, Any]:
    """What a tool should find in the run, in the layout that README.md describes."""
    files = sorted(path for path in folder.iterdir() if path.name != _EXPECTED)
    ranks: dict[str, dict[str, Any]] = {}
    for file in files:
        trace, rows = read_rows(file)
        ranks[str(trace["distributedInfo"]["rank"])] = answer_rank(rows)
    steps = sorted(ranks["0"]["steps"], key=int)
    of_steps = [answer["steps"][step] for answer in ranks.values() for step in steps]
    hidden = sum(step["overlap_ns"] for step in of_steps)
    total = sum(step["communication_ns"] for step in of_steps)
    figures = ("communication_ns", "overlap_ns", "exposed_communication_ns")
    return {
        "world_size": len(files),
        "per_rank": {
            rank: {
                **answer["whole"],
                "overlap_ratio": _ratio(answer["whole"]["overlap_ns"], answer["whole"]["communication_ns"]),
            }
            for rank, answer in ranks.items()
        },
        "per_step": {
            step: {
                rank: {key: answer["steps"][step][key] for key in figures} for rank, answer in ranks.items()
            }
            for step in steps
        },
        "step_duration_ns": {
            step: {rank: answer["steps"][step]["duration_ns"] for rank, answer in ranks.items()}
            for step in steps
        },
        "steady_overlap_ratio": _ratio(hidden, total),
        "bucket_elements": {step: ranks["0"]["steps"][step]["bucket_elements"] for step in steps},
        "operations": {"all_reduce": ranks["0"]["operations"]},
        "missing_ranks": [],
    }


def _ratio(part: int, whole: int) -> float:
    return round(part / whole, 6)


def record(folder: Path, cap_mb: int) -> dict[str, Any]:
    """Record one run into `folder` and return its `expected.json`."""
    from rankscope.collector.demo import run_demo

    if folder.exists():
        shutil.rmtree(folder)
    files = run_demo(folder, bucket_cap_mb=cap_mb, steps=_STEPS, scrub=True)
    return {
        "case": folder.name,
        "source": "recorded by sample_traces/record_gloo.py with rankscope's collector",
        "kind": "semantics",
        "shows": f"8 x Linear(1024) under DistributedDataParallel on 2 CPU ranks (gloo), bucket_cap_mb={cap_mb}.",
        "should": "List the buckets with their elements in launch order, and the overlap of each step.",
        "files": [file.name for file in files],
        "reasoning": "Unions, overlaps and sums over the rows of each file, as record_gloo.py spells out. "
        "Communication: rows named gloo:*; compute: cpu_op rows in no other cpu_op row of their thread. A layer has "
        "1024 x 1024 weights and 1024 biases, 1,049,600 elements; a bucket takes whole layers until it reaches "
        "the cap.",
        "expect": answer_run(folder),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Record, or answer, as the command line asks."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directory", nargs="?", type=Path, default=Path(__file__).parent)
    parser.add_argument("--answers", type=Path, metavar="RUN", help="only work out the answers of this run")
    options = parser.parse_args(arguments)
    if options.answers:
        json.dump(answer_run(options.answers), sys.stdout, indent=1)
        return
    for cap_mb in _CAPS_MB:
        folder = options.directory / f"gloo_2rank_cap{cap_mb}"
        expected = json.dumps(record(folder, cap_mb), indent=1) + "\n"
        (folder / _EXPECTED).write_text(expected, encoding="utf-8")


if __name__ == "__main__":
    main()
