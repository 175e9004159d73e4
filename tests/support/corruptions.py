"""Damaged runs whose answer is known: the table that `benchmarks/corruption.py` prints and the tests run.

A row is decidable if what is left of the run still tells who is slow; that was settled by the row's reason, before
any analysis ran. A decidable row must name the right ranks (or nobody, if nobody is slow), an undecidable one must
name nobody.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rankscope.testing import corrupt
from rankscope.testing.run_copy import copy_run, file_of_rank
from rankscope.testing.synth import (
    Scenario,
    TraceStyle,
    ddp_run,
    host_slow,
    pipeline_data_parallel,
    tensor_data_parallel,
    write_run,
)

MS = 1_000_000
Damage = Callable[[Path, Path], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A damaged run.

    Attributes:
        source: a folder of ../shared/traces, or a name in `SYNTHETIC`.
        damage: what was done, in words.
        apply: does it: (source, destination).
        truth: the ranks that are slow; () for nobody.
        decidable: whether what is left tells it.
        why: the reason for that.
    """

    source: str
    damage: str
    apply: Damage
    truth: tuple[int, ...]
    decidable: bool
    why: str

    @property
    def name(self) -> str:
        """Text that tells it from all others."""
        return f"{self.source}: {self.damage}"

    @property
    def is_synthetic(self) -> bool:
        """Whether its source is made, not recorded."""
        return self.source in SYNTHETIC

    def make(self, sources: Sources, destination: Path) -> None:
        """Write the damaged run."""
        self.apply(sources.folder(self.source), destination)

    def is_right(self, verdict: str, ranks: tuple[int, ...]) -> bool:
        """Whether a verdict is what the row demands."""
        if not self.decidable:
            return ranks == ()
        return ranks == self.truth and verdict == ("found" if self.truth else "none")

    def is_wrong(self, ranks: tuple[int, ...]) -> bool:
        """Whether somebody is named who is not slow, or not everybody of whom it is known."""
        return ranks not in ((), self.truth)


class Sources:
    """Folders of the undamaged runs; synthetic ones are written when first asked for."""

    def __init__(self, recorded: Path, made: Path) -> None:
        self._recorded = recorded
        self._made = made

    def folder(self, name: str) -> Path:
        """Where a run lies."""
        if name not in SYNTHETIC:
            return self._recorded / name
        folder = self._made / name
        if not folder.exists():
            scenario, style = SYNTHETIC[name]
            write_run(scenario(), folder, style=style)
        return folder


def _long(straggler: int | None) -> Scenario:
    """60 steps of one second on 4 ranks; the clock of rank 1 runs 20 ppm fast: 1.2 ms over the run."""
    run = ddp_run(
        ranks=4,
        steps=60,
        forward_ns=400 * MS,
        backward_ns=(200 * MS, 200 * MS, 150 * MS),
        optimizer_ns=50 * MS,
        straggler=None if straggler is None else (straggler, 40 * MS, "compute"),
        name="long",
    )
    return run.with_clocks(drift_ppm={1: 20.0})


_SEQ = TraceStyle(torch="2.12")
_ORDER = TraceStyle(torch="2.4", file_names="kineto")
SYNTHETIC: Mapping[str, tuple[Callable[[], Scenario], TraceStyle]] = {
    "ddp": (lambda: ddp_run(ranks=4, steps=6, straggler=(2, 3 * MS, "input")), _SEQ),
    "clean": (lambda: ddp_run(ranks=4, steps=6), _ORDER),
    "chained": (lambda: tensor_data_parallel(slow={0: 10 * MS}, steps=6), _ORDER),
    "host": (lambda: host_slow(steps=5), _ORDER),
    "pipeline": (lambda: pipeline_data_parallel(slow={3: MS}, steps=5), _ORDER),
    "drift": (partial(_long, 2), _ORDER),
    "drift clean": (partial(_long, None), _ORDER),
}


def rows() -> tuple[Row, ...]:
    """All rows."""
    return (*_synthetic_rows(), *_recorded_rows())


_ENDS = "a clock's offset moves all ends of its rank alike, and collectives end together"
_ORDER_LEFT = "order, sizes and ends of the rest tell which event is missing"
_INSIDE = "the rank stands inside the file"
_SAME_RANKS = "a group is its ranks, not its name"
_SHARED_STEPS = "the steps that all recorded are enough"
_SEVERAL_METHODS = "order, sizes and ends tell what belongs together"
_GONE = "nothing tells whether the lost rank or one of those present was the last"


def _synthetic_rows() -> Iterator[Row]:
    yield Row(
        source="drift",
        damage="60 s with a clock 20 ppm fast",
        apply=_as_it_is,
        truth=(2,),
        decidable=True,
        why="drift shows in 180 collectives over 60 s",
    )
    yield Row(
        source="drift clean",
        damage="60 s with a clock 20 ppm fast",
        apply=_as_it_is,
        truth=(),
        decidable=True,
        why="drift shows in 180 collectives over 60 s",
    )
    for source, slow, innocent in (
        ("ddp", (2,), 1),
        ("clean", (), 1),
        ("chained", (0,), 2),
        ("host", (6, 7), 3),
        ("pipeline", (3,), 4),
    ):
        culprit = slow[0] if slow else 2
        yield from _clock_rows(source, slow, culprit, innocent)
        yield from _loss_rows(source, slow, (culprit, innocent))
        yield from _file_rows(source, slow, (culprit, innocent))
        yield _group_names(source, slow, innocent, {str(n): f"group {n}" for n in range(12)})
        yield _window(source, slow, innocent, (2, 3, 4))
    yield Row(
        source="ddp",
        damage="sequence numbers removed",
        apply=corrupt.remove_sequence_numbers,
        truth=(2,),
        decidable=True,
        why=_SEVERAL_METHODS,
    )
    yield Row(
        source="ddp",
        damage="the file of rank 1 is of another run",
        apply=partial(_of_another_run, rank=1),
        truth=(2,),
        decidable=False,
        why="ends of another run agree with nothing here",
    )
    yield Row(
        source="ddp",
        damage="clocks, lost events and renamed groups together",
        apply=_several,
        truth=(2,),
        decidable=True,
        why="each of these leaves the ends of the others as they were",
    )


def _recorded_rows() -> Iterator[Row]:
    for source, slow, innocent in (
        ("torchrec_straggler_4rank", 2, 0),
        ("torchrec_resnet18_2rank", 1, 0),
        ("megatron_tp2_2rank", 0, 1),
        ("param_dlrm_8rank", 7, 2),
    ):
        yield from _clock_rows(source, (slow,), slow, innocent)
        yield from _loss_rows(source, (slow,), (slow, innocent))
        yield from _file_rows(source, (slow,), (slow, innocent))
    yield _window("torchrec_straggler_4rank", (2,), 0, (5, 6))
    yield _window("torchrec_resnet18_2rank", (1,), 0, (2, 3))
    yield _group_names("megatron_tp2_2rank", (0,), 1, {str(n): f"group {n}" for n in range(64)})
    for source, slow, innocent, steps in (
        ("amd_resnet_ddp_4rank", 3, 1, (10, 11)),
        ("nanogpt_h100_8rank", 1, 6, (11, 12, 13)),
    ):
        yield from list(_clock_rows(source, (slow,), slow, innocent))[1:]
        yield _loss(source, (slow,), slow, "head")
        yield _loss(source, (slow,), innocent, "middle")
        yield _loss(source, (slow,), innocent, "tail")
        yield from _file_rows(source, (slow,), (slow, innocent))
        yield _group_names(source, (slow,), innocent, {"0": "default", "1": "other"})
        yield _window(source, (slow,), innocent, steps)
    yield Row(
        source="amd_resnet_ddp_4rank",
        damage="sequence numbers removed",
        apply=corrupt.remove_sequence_numbers,
        truth=(3,),
        decidable=True,
        why=_SEVERAL_METHODS,
    )


def _clock_rows(source: str, truth: tuple[int, ...], culprit: int, innocent: int) -> Iterator[Row]:
    for rank in (culprit, innocent):
        yield Row(
            source=source,
            damage=f"clock of rank {rank} +10 ms",
            apply=partial(corrupt.shift_clock, rank=rank, shift_ns=10 * MS),
            truth=truth,
            decidable=True,
            why=_ENDS,
        )
    yield Row(
        source=source,
        damage=f"clocks of ranks {culprit} -7 ms and {innocent} +4 ms",
        apply=partial(_shift_two, shifts={culprit: -7 * MS, innocent: 4 * MS}),
        truth=truth,
        decidable=True,
        why=_ENDS,
    )


def _loss_rows(source: str, truth: tuple[int, ...], ranks: tuple[int, int]) -> Iterator[Row]:
    for rank in ranks:
        for place in ("head", "middle", "tail"):
            yield _loss(source, truth, rank, place)


def _loss(source: str, truth: tuple[int, ...], rank: int, place: str) -> Row:
    return Row(
        source=source,
        damage=f"rank {rank} lost a collective ({place})",
        apply=partial(corrupt.drop_collective, rank=rank, place=place),  # type: ignore[arg-type]
        truth=truth,
        decidable=True,
        why=_ORDER_LEFT,
    )


def _file_rows(source: str, truth: tuple[int, ...], ranks: tuple[int, int]) -> Iterator[Row]:
    culprit, innocent = ranks
    yield Row(
        source=source,
        damage=f"file of rank {culprit} missing",
        apply=partial(corrupt.remove_rank, rank=culprit),
        truth=truth,
        decidable=False,
        why=_GONE,
    )
    yield Row(
        source=source,
        damage=f"files of ranks {culprit} and {innocent} swapped",
        apply=partial(corrupt.swap_files, ranks=ranks),
        truth=truth,
        decidable=True,
        why=_INSIDE,
    )
    yield Row(
        source=source,
        damage=f"file of rank {innocent} renamed to moved_rank{culprit}.json",
        apply=partial(_rename_file, rank=innocent, number=culprit),
        truth=truth,
        decidable=True,
        why=_INSIDE,
    )


def _group_names(source: str, truth: tuple[int, ...], rank: int, names: Mapping[str, str]) -> Row:
    return Row(
        source=source,
        damage=f"rank {rank} calls its groups otherwise",
        apply=partial(corrupt.rename_groups, rank=rank, names=names),
        truth=truth,
        decidable=True,
        why=_SAME_RANKS,
    )


def _window(source: str, truth: tuple[int, ...], rank: int, steps: tuple[int, ...]) -> Row:
    return Row(
        source=source,
        damage=f"rank {rank} recorded steps {steps[0]} to {steps[-1]} only",
        apply=partial(corrupt.keep_steps, rank=rank, steps=steps),
        truth=truth,
        decidable=True,
        why=_SHARED_STEPS,
    )


def _as_it_is(source: Path, destination: Path) -> None:
    copy_run(source, destination)


def _one_after_another(source: Path, destination: Path, damages: list[Damage]) -> None:
    for number, damage in enumerate(damages):
        last = number == len(damages) - 1
        here = destination if last else destination.with_name(f"{destination.name}-{number}")
        damage(source, here)
        source = here


def _shift_two(source: Path, destination: Path, *, shifts: Mapping[int, int]) -> None:
    damages: list[Damage] = [
        partial(corrupt.shift_clock, rank=rank, shift_ns=ns) for rank, ns in shifts.items()
    ]
    _one_after_another(source, destination, damages)


def _several(source: Path, destination: Path) -> None:
    damages: list[Damage] = [
        partial(corrupt.shift_clock, rank=1, shift_ns=10 * MS),
        partial(corrupt.drop_collective, rank=0, place="head"),
        partial(corrupt.drop_collective, rank=3, place="middle"),
        partial(corrupt.rename_groups, rank=2, names={"0": "other"}),
        corrupt.remove_sequence_numbers,
    ]
    _one_after_another(source, destination, damages)


def _rename_file(source: Path, destination: Path, *, rank: int, number: int) -> None:
    path = file_of_rank(copy_run(source, destination), rank)
    path.rename(destination / f"moved_rank{number}.json{'.gz' if path.suffix == '.gz' else ''}")


def _of_another_run(source: Path, destination: Path, *, rank: int) -> None:
    """Put the file of a rank from a run of the same job with other waits, 20 minutes later."""
    other = destination.with_name(f"{destination.name}-other")
    later = ddp_run(ranks=4, steps=6, straggler=(0, 5 * MS, "compute"), forward_ns=3 * MS)
    write_run(later.with_clocks(dict.fromkeys(range(4), 1_200_000 * MS)), other, style=_SEQ)
    path = file_of_rank(copy_run(source, destination), rank)
    shutil.copyfile(file_of_rank(other, rank), path)
