"""Writes the synthetic runs of sample_traces again, byte for byte the same.

    python sample_traces/regenerate.py [DIRECTORY]

The directory is the one of this script unless given. Runs that were recorded, not made, are left alone.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rankscope.testing.corrupt import empty_file, truncate_file
from rankscope.testing.synth import Scenario, TraceStyle, ddp_run, write_run

_EXPECTED = "expected.json"
_BUCKETS = ((2_560, 262_144), (524_288, 1_024), (1_048_576,))
_TRUNCATED_RANK, _EMPTY_RANK = 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A run: its folder, what it shows, what a tool should say, its scenario and style."""

    folder: str
    kind: str
    shows: str
    should: str
    scenario: Scenario
    style: TraceStyle = field(default_factory=TraceStyle)


def samples() -> tuple[Sample, ...]:
    """The runs that are made as they stand; the broken one is made from `good_run`."""
    return (
        Sample(
            folder="synthetic_full_overlap",
            kind="semantics",
            shows="DDP on 2 ranks whose every all-reduce hides behind the rest of backward.",
            should="overlap_ratio 1 and exposed communication 0 in every step; no straggler, nothing to advise.",
            scenario=ddp_run(overlap="full", buckets=_BUCKETS, copy_ns=80_000, forward_ns=2_000_137),
            style=TraceStyle(torch="2.8"),
        ),
        Sample(
            folder="synthetic_no_overlap",
            kind="semantics",
            shows="The same buckets, but every gradient is ready only when backward has ended.",
            should="overlap_ratio 0, not undefined; all communication is exposed. Times are whole microseconds, "
            "kernels carry no arguments: operations come from the nccl: annotations.",
            scenario=ddp_run(overlap="none", buckets=_BUCKETS, copy_ns=80_000),
            style=TraceStyle(torch="2.1", file_names="kineto"),
        ),
        Sample(
            folder="synthetic_straggler",
            kind="straggler",
            shows="4 ranks, of which rank 2 loads data 3 ms longer in every step.",
            should="Name rank 2, cause input, cost 3 ms a step. Its own communication is the shortest.",
            scenario=ddp_run(
                ranks=4, steps=4, buckets=_BUCKETS, copy_ns=80_000, straggler=(2, 3_000_000, "input")
            ),
            style=TraceStyle(torch="2.12"),
        ),
        Sample(
            folder="synthetic_clock_skew",
            kind="straggler",
            shows="4 ranks on 2 hosts; the clocks of the second host are 5 ms ahead, more than a step lasts, and "
            "its files count from another base time.",
            should="Find the offsets from the ends of the collectives and name nobody: all arrive together.",
            scenario=ddp_run(ranks=4, buckets=_BUCKETS, ranks_per_host=2).with_clocks(
                {2: 5_000_000, 3: 5_000_400}
            ),
            style=TraceStyle(file_names="kineto", base_shift_ns={2: 250_000_000, 3: 250_000_000}),
        ),
    )


def good_run() -> Sample:
    """The run of which the broken one is a damaged copy."""
    return Sample(
        folder="synthetic_broken",
        kind="malformed",
        shows="3 ranks: the text of rank 1 stops in the middle, the file of rank 2 is an empty gzip stream.",
        should="Name both files with offset and reason, analyse rank 0, and end with status 2.",
        scenario=ddp_run(ranks=3, buckets=_BUCKETS, copy_ns=80_000),
    )


def regenerate(directory: Path) -> None:
    """Write all synthetic runs below `directory`, in place of what stands there under their names."""
    for sample in samples():
        folder = _new_folder(directory, sample)
        expected = write_run(sample.scenario, folder, style=sample.style)
        _write_expected(folder, sample, expected.as_json())
    _write_broken(directory, good_run())


def _write_broken(directory: Path, sample: Sample) -> None:
    folder = _new_folder(directory, sample)
    with tempfile.TemporaryDirectory() as held:
        good, cut = Path(held, "good"), Path(held, "cut")
        write_run(sample.scenario, good, style=sample.style)
        length = truncate_file(good, cut, rank=_TRUNCATED_RANK)
        empty_file(cut, folder, rank=_EMPTY_RANK)
    lost = {_TRUNCATED_RANK, _EMPTY_RANK}
    expected = sample.scenario.without_files_of(lost).expected
    left = replace(expected, collectives=(), clock_offsets_ns={}).as_json()
    del left["missing_ranks"]  # the files are there, and say nothing
    truncated, empty = (f"rank_{r:05d}.0.pt.trace.json.gz" for r in (_TRUNCATED_RANK, _EMPTY_RANK))
    left["errors"] = [
        # Where the text ends, or where the event that it cuts off begins: an event takes less than 1 kB.
        {"file": truncated, "byte_offset_range": [length - 1_000, length], "must_contain": [truncated]},
        {"file": empty, "byte_offset": 0, "must_contain": ["empty"]},
    ]
    left |= {"ranks_analysed": [0], "ranks_failed": sorted(lost)}
    _write_expected(folder, sample, left)


def _new_folder(directory: Path, sample: Sample) -> Path:
    folder = directory / sample.folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _write_expected(folder: Path, sample: Sample, expect: dict[str, Any]) -> None:
    text = {
        "case": sample.folder,
        "source": "made by sample_traces/regenerate.py",
        "kind": sample.kind,
        "shows": sample.shows,
        "should": sample.should,
        "files": sorted(path.name for path in folder.iterdir()),
        "expect": expect,
        "reasoning": sample.scenario.expected.reasoning,
        "conventions": "../README.md",
    }
    (folder / _EXPECTED).write_text(json.dumps(text, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    regenerate(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
