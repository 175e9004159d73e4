"""Many ranks together: how long matching, clocks, replay and the verdict take, and how that grows.

    python benchmarks/scale.py [--ranks 1024] [--collectives 2000] [--parts 4 2 1]

Runs are tables made in memory (tests/support/large_run.py). What is timed is `put_together`: matched, aligned and
blamed. The work on each rank alone, which a pool of processes shares, stands in a column of its own. Sizes grow in
collectives and then in ranks; a fitted exponent of 1 is linear growth.
"""

from __future__ import annotations

import argparse
import math
import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from rankscope.correlate.device_events import device_events
from rankscope.pipeline.together import Together, put_together
from rankscope.pipeline.window_results import analyze_window

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.large_run import PER_STEP, LargeRun, large_run

LIMIT_S = 60
LIMIT_MB = 4_096
COLUMNS = ("ranks", "collectives", "each rank [s]", "together [s]", "CPU [s]", "peak [MB]", "named")


@dataclass(frozen=True)
class Measured:
    """One size: wall seconds and CPU seconds of `put_together`."""

    ranks: int
    collectives: int
    wall_s: float
    cpu_s: float


def main() -> int:
    """Print the table; the exit status is 1 where the largest run breaks a limit or a wrong rank is named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", type=int, default=1024)
    parser.add_argument("--collectives", type=int, default=2000)
    parser.add_argument("--parts", type=int, nargs="+", default=[4, 2, 1], help="divide the size by these")
    options = parser.parse_args()
    parts = sorted(options.parts, reverse=True)
    print("".join(f"{title:>14}" for title in COLUMNS))
    in_collectives = [_measure(options.ranks, options.collectives // part) for part in parts if part > 1]
    in_ranks = [_measure(options.ranks // part, options.collectives) for part in parts if part > 1]
    whole = _measure(options.ranks, options.collectives)
    print(f"exponent in collectives: {_exponent([*in_collectives, whole], 'collectives')}")
    print(f"exponent in ranks: {_exponent([*in_ranks, whole], 'ranks')}")
    print(f"limits: {LIMIT_S} s and {LIMIT_MB} MB; whole run {whole.wall_s:.1f} s and {_peak_mb():.0f} MB")
    return 0 if whole.wall_s <= LIMIT_S and _peak_mb() <= LIMIT_MB else 1


def _measure(ranks: int, collectives: int) -> Measured:
    collectives -= collectives % PER_STEP
    made = large_run(ranks=ranks, collectives=collectives)
    begin = time.perf_counter()
    results = [analyze_window(events, ranks) for events in device_events(made.run)]
    each_s = time.perf_counter() - begin
    begin, begin_cpu = time.perf_counter(), time.process_time()
    together = put_together(made.run, results, list(range(collectives // PER_STEP)))
    wall_s, cpu_s = time.perf_counter() - begin, time.process_time() - begin_cpu
    named = _check(together, made)
    figures = (
        ranks,
        collectives,
        f"{each_s:.1f}",
        f"{wall_s:.1f}",
        f"{cpu_s:.1f}",
        f"{_peak_mb():.0f}",
        named,
    )
    print("".join(f"{figure:>14}" for figure in figures), flush=True)
    return Measured(ranks=ranks, collectives=collectives, wall_s=wall_s, cpu_s=cpu_s)


def _check(together: Together, made: LargeRun) -> int:
    culprit = together.straggler.culprit
    if culprit is None or culprit.candidate.ranks != (made.slow,):
        raise SystemExit(f"rank {made.slow} is slow, but the verdict is {together.straggler}")
    if not together.matching.is_complete.all():
        raise SystemExit("not every collective was found on all its ranks")
    return made.slow


def _exponent(measured: list[Measured], what: str) -> str:
    """Slope of log CPU seconds over log size, least squares."""
    if len(measured) < 2:
        return "needs two sizes"
    points = [(math.log(getattr(m, what)), math.log(max(m.cpu_s, 1e-6))) for m in measured]
    middle_x = sum(x for x, _ in points) / len(points)
    middle_y = sum(y for _, y in points) / len(points)
    above = sum((x - middle_x) * (y - middle_y) for x, y in points)
    return f"{above / sum((x - middle_x) ** 2 for x, _ in points):.2f}"


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    sys.exit(main())
