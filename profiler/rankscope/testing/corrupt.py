"""Damages written trace files on purpose, always in a copy: `shift_clock(source, destination, rank=1, ...)`.

Every function takes the directory of a run and makes a damaged copy of it in another directory. Runs may be
synthetic or real; a file's rank is that of its `distributedInfo`, else the number in its name.
"""

from __future__ import annotations

from rankscope.testing.corrupt_clocks import drift_clock, shift_clock
from rankscope.testing.corrupt_events import (
    drop_collective,
    keep_steps,
    put_bad_numbers,
    put_control_characters,
    remove_sequence_numbers,
    rename_groups,
    shuffle_events,
)
from rankscope.testing.corrupt_files import (
    empty_file,
    interleave_files,
    remove_rank,
    swap_files,
    truncate_file,
)
from rankscope.testing.repeat import repeat_in_time

__all__ = [
    "drift_clock",
    "drop_collective",
    "empty_file",
    "interleave_files",
    "keep_steps",
    "put_bad_numbers",
    "put_control_characters",
    "remove_rank",
    "remove_sequence_numbers",
    "rename_groups",
    "repeat_in_time",
    "shift_clock",
    "shuffle_events",
    "swap_files",
    "truncate_file",
]
