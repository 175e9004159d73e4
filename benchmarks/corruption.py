"""Damaged runs whose answer is known: does rankscope name the right ranks, and nobody where that cannot be told?

    python benchmarks/corruption.py [--only TEXT] [--recorded FOLDER] [--no-hta]

Beside it, computed in the same run from the same files, what two simple methods say that many tools use: the rank
whose n-th collectives start last by raw timestamps, and the rank that waits least; and HolisticTraceAnalysis, where
it is installed. Rows of recorded runs need ../shared/traces.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from rankscope.pipeline.analyze import analyze_fully
from rankscope.readers.run_reader import read_run
from support.corruptions import Row, Sources, rows
from support.naive import last_to_start, least_waiting

ROOT = Path(__file__).resolve().parents[1]
HEADER = (
    f"{'run':25} {'damage':47} {'slow':>6} {'decidable':>9}   {'rankscope':28} "
    f"{'last':>5} {'least':>5} {'HTA':>10}"
)


def main() -> int:
    """Print the table; the exit status is 1 where a row is not as it must be."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="rows whose name holds this text")
    parser.add_argument("--recorded", type=Path, default=ROOT.parent / "shared" / "traces")
    parser.add_argument("--no-hta", action="store_true")
    options = parser.parse_args()
    chosen = [row for row in rows() if options.only in row.name]
    if not options.recorded.is_dir():
        print(f"{options.recorded} is not here: only synthetic runs")
        chosen = [row for row in chosen if row.is_synthetic]
    print(HEADER)
    counts: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as directory:
        sources = Sources(options.recorded, Path(directory, "made"))
        for number, row in enumerate(chosen):
            counts.update(_show(row, sources, Path(directory, str(number)), with_hta=not options.no_hta))
    for who in ("rankscope", "last to start", "least waiting", "HTA"):
        print(
            f"{who}: right {counts[who, 'right']}, wrong rank named {counts[who, 'wrong']}, "
            f"missed {counts[who, 'missed']}, failed {counts[who, 'failed']}"
        )
    print("\nWhy a row is decidable or not:")
    for why, names in _reasons(chosen).items():
        print(f"- {why}: {', '.join(sorted(names))}")
    return 0 if counts["rankscope", "right"] == len(chosen) else 1


def _show(row: Row, sources: Sources, folder: Path, *, with_hta: bool) -> list[tuple[str, str]]:
    """Print a row; (who, how it did) of everybody."""
    row.make(sources, folder)
    analysis = analyze_fully(read_run(folder))
    straggler, comms = analysis.report.straggler, analysis.together.comms
    ranks = tuple(straggler.ranks) if straggler else ()
    verdict = straggler.verdict if straggler else "none"
    peers = {"last to start": last_to_start(comms), "least waiting": least_waiting(comms)}
    said = {who: () if rank is None else (rank,) for who, rank in peers.items()}
    hta = _hta(folder) if with_hta else None
    good = row.is_right(verdict, ranks)
    mark = "" if good else ("   WRONG" if row.is_wrong(ranks) else "   MISSED")
    print(
        f"{row.source:25} {row.damage:47} {_text(row.truth):>6} {'yes' if row.decidable else 'no':>9}   "
        f"{verdict + ' ' + _text(ranks):28} {_text(said['last to start']):>5} {_text(said['least waiting']):>5} "
        f"{hta if isinstance(hta, str) else _text(hta or ()):>10}{mark}",
        flush=True,
    )
    outcome = [("rankscope", "right" if good else "wrong" if row.is_wrong(ranks) else "missed")]
    outcome += [(who, _judge(row, named)) for who, named in said.items()]
    if hta is not None:
        outcome.append(("HTA", "failed" if isinstance(hta, str) else _judge(row, hta)))
    return outcome


def _judge(row: Row, named: tuple[int, ...]) -> str:
    """How a method did that knows no verdict but a rank: one of several slow ranks is right too."""
    wanted = row.truth if row.decidable else ()
    if not named:
        return "missed" if wanted else "right"
    return "right" if set(named) <= set(wanted) else "wrong"


def _hta(folder: Path) -> tuple[int, ...] | str | None:
    """The rank that HolisticTraceAnalysis names first; the error where it fails; None where it is not installed."""
    try:
        from hta.trace_analysis import TraceAnalysis
    except ImportError:
        return None
    logging.disable(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            named = TraceAnalysis(trace_dir=str(folder)).get_potential_stragglers(num_candidates=1)
        except Exception as error:  # noqa: BLE001 - a failing peer is a result
            return type(error).__name__[:10]
    return tuple(int(rank) for rank in list(named)[:1])


def _reasons(chosen: list[Row]) -> dict[str, set[str]]:
    reasons: dict[str, set[str]] = {}
    for row in chosen:
        reasons.setdefault(f"{'decidable' if row.decidable else 'not decidable'} - {row.why}", set()).add(
            row.source
        )
    return reasons


def _text(ranks: tuple[int, ...]) -> str:
    return ",".join(map(str, ranks)) or "-"


if __name__ == "__main__":
    sys.exit(main())
