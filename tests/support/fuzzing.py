"""What must hold of any damaged trace: untouched events give the figures they gave, or a problem names the place.

Run as a script it tries many mutations: `python tests/support/fuzzing.py --count 20000`.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import random
import resource
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankscope.errors import RankscopeError, TraceSyntaxError
from rankscope.model.categories import GPU_CATEGORIES, Category, Classifier
from rankscope.model.run import Run
from rankscope.model.table import TraceTable
from rankscope.pipeline import analyze_run
from rankscope.readers.identity import identify
from rankscope.readers.trace_file import NotATraceError, TraceFile, read_trace
from rankscope.renderers.to_json import render_json
from support.mutations import CleanTrace, Mutation, mutate
from support.reading import blocks_of

LONGEST_S = 10
MOST_BYTES = 500 << 20
EVENTS = 60
ANALYSED = 0.2
BLOCK_BYTES = (None, None, 64, 1_000, 20_000)
_GPU_REPAIRS = {"overrun", "duplicate-event"}

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A clean trace, the row that each of its events gives (None: it gives none), and its name."""

    name: str
    clean: CleanTrace
    rows: tuple[Row | None, ...]


class SilentlyWrongError(AssertionError):
    """A figure of an untouched event changed, or was lost, and nothing says so."""


def subjects(traces: Path) -> list[Subject]:
    """Excerpts of real traces of several releases, as objects and as a bare array."""
    files = [
        next(iter(sorted(folder.rglob("*.gz"))))
        for folder in sorted(traces.iterdir())
        if any(folder.rglob("*.gz"))
    ]
    made = [_subject(path) for path in files]
    return [*made, _subject(files[0], bare=True)]


def _subject(path: Path, *, bare: bool = False) -> Subject:
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    head, events, tail = _excerpt(text.decode(), EVENTS)
    if bare:
        head, tail = "[", "]"
    clean = _assemble(head, events, tail)
    rows = [_rows_of(_read(_assemble(head, [event], tail).text)) for event in events]
    subject = Subject(
        name=path.parent.name, clean=clean, rows=tuple(next(iter(r.elements()), None) for r in rows)
    )
    file = _read(clean.text)
    assert _rows_of(file) == Counter(row for row in subject.rows if row is not None), path
    return subject


def _excerpt(text: str, count: int) -> tuple[str, list[str], str]:
    """The text before the events, `count` events from the middle, and the text after them."""
    decoder, position = json.JSONDecoder(strict=False), text.index("[", text.index('"traceEvents"')) + 1
    head, found = text[:position], []
    while True:
        while text[position] in " \r\n\t,":
            position += 1
        if text[position] == "]":
            break
        _, end = decoder.raw_decode(text, position)
        found.append(text[position:end])
        position = end
    device = [i for i, event in enumerate(found) if '"stream"' in event][: count // 3]
    middle = len(found) // 2
    chosen = sorted({*range(5), *range(middle, middle + count), *device})
    return head, [found[i] for i in chosen if i < len(found)], text[position:]


def _assemble(head: str, events: list[str], tail: str) -> CleanTrace:
    pieces, starts, ends, at = [head.encode()], [], [], len(head.encode())
    for i, event in enumerate(events):
        separator, data = b",\n  " if i else b"\n  ", event.encode()
        starts.append(at + len(separator))
        at += len(separator) + len(data)
        ends.append(at)
        pieces += [separator, data]
    return CleanTrace(
        text=b"".join([*pieces, b"\n  ", tail.encode()]), starts=tuple(starts), ends=tuple(ends)
    )


def _read(stored: bytes, block_bytes: int | None = None) -> TraceFile:
    with blocks_of(block_bytes):
        return read_trace(io.BytesIO(stored), "rank0.json", Classifier())


def _rows_of(file: TraceFile) -> Counter[Row]:
    table = file.table
    return Counter(_row(table, i) for i in range(len(table)))


def _row(table: TraceTable, i: int) -> Row:
    lane = table.lanes[table.lane[i]]
    return (
        Category(int(table.category[i])),
        int(table.event_class[i]),
        table.names[table.name[i]],
        int(table.start_ns[i]),
        int(table.duration_ns[i]),
        (lane.pid, lane.tid, lane.device, lane.stream),
        int(table.correlation[i]),
        int(table.external_id[i]),
    )


def check(subject: Subject, mutation: Mutation, rng: random.Random) -> str:
    """What came of a mutated file: "read", "refused" or "no trace".

    Raises:
        SilentlyWrongError: a figure is wrong, and nothing says so; or a fault is placed where none can be.
    """
    try:
        file = _read(mutation.stored, rng.choice(BLOCK_BYTES))
    except TraceSyntaxError as error:
        _check_place(mutation, error)
        return "refused"
    except NotATraceError:
        if not mutation.touches_frame:
            raise SilentlyWrongError("taken for no trace, though only events were touched") from None
        return "no trace"
    _check_rows(subject, mutation, file)
    if rng.random() < ANALYSED:
        _analyze(file)
    return "read"


def _check_place(mutation: Mutation, error: TraceSyntaxError) -> None:
    if mutation.keeps_all and mutation.kind != "gzip":
        raise SilentlyWrongError(f"refused, though it is right: {error}")
    if error.offset is None:
        raise SilentlyWrongError(f"no place is named: {error}")
    if error.offset < mutation.first_byte - 1:
        raise SilentlyWrongError(f"the fault at {mutation.first_byte} is placed at {error.offset}: {error}")


def _check_rows(subject: Subject, mutation: Mutation, file: TraceFile) -> None:
    found = _rows_of(file)
    expected = Counter(
        row for i, row in enumerate(subject.rows) if row is not None and i not in mutation.touched
    )
    if mutation.touches_frame:  # the base time may be another
        found, expected = _without_start(found), _without_start(expected)
    if _GPU_REPAIRS & {problem.kind for problem in file.problems}:
        found, expected = _on_host(found), _on_host(expected)
    lost = expected - found
    if lost:
        raise SilentlyWrongError(
            f"{lost.total()} untouched event(s) changed or lost, the first: {next(iter(lost))}"
        )
    if mutation.keeps_all and found != expected:
        raise SilentlyWrongError(f"more events than there are: {next(iter(found - expected))}")


def _without_start(rows: Counter[Row]) -> Counter[Row]:
    return Counter((*row[:3], *row[4:]) for row in rows.elements())


def _on_host(rows: Counter[Row]) -> Counter[Row]:
    return Counter(
        row for row in rows.elements() if row[0] not in GPU_CATEGORIES and row[0] is not Category.OTHER
    )


def _analyze(file: TraceFile) -> None:
    try:
        windows, problems = identify([file])
        report = analyze_run(Run(name="r", source="r", windows=windows, problems=(*file.problems, *problems)))
    except RankscopeError:
        return
    json.loads(render_json(report), parse_constant=_refuse)


def _refuse(constant: str) -> None:
    raise SilentlyWrongError(f"{constant} in the report")


@contextmanager
def _at_most(seconds: int) -> Iterator[None]:
    """Stop what takes longer, in CPU time: the wall clock of a busy machine says nothing of the code."""

    def stop(*_: object) -> None:
        raise SilentlyWrongError(f"takes longer than {seconds} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def try_one(subject: Subject, seed: int) -> tuple[str, str]:
    """Kind and outcome of the mutation of a seed."""
    rng = random.Random(seed)
    mutation = mutate(subject.clean, rng)
    with _at_most(LONGEST_S):
        return mutation.kind, check(subject, mutation, rng)


def main() -> int:
    """Try `--count` mutations from `--seed` on; 1 if one of them fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--traces", type=Path, default=Path(__file__).parents[3] / "shared" / "traces")
    options = parser.parse_args()
    chosen, outcomes, failures = subjects(options.traces), Counter[tuple[str, str]](), 0
    for seed in range(options.seed, options.seed + options.count):
        subject = chosen[seed % len(chosen)]
        try:
            outcomes[try_one(subject, seed)] += 1
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
            failures += 1
            text = f"seed {seed} ({subject.name}): {type(error).__name__}: {str(error)[:300]}"
            sys.stderr.write(f"{text}\n")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    for (kind, outcome), count in sorted(outcomes.items()):
        sys.stdout.write(f"{kind:18} {outcome:10} {count:7}\n")
    sys.stdout.write(f"{options.count} mutations, {failures} failures, peak memory {peak >> 20} MiB\n")
    return 1 if failures or peak > MOST_BYTES else 0


if __name__ == "__main__":
    sys.exit(main())
