"""Real training over gloo with a fault hidden in one rank: does rankscope name the rank, the stage and the time?

    python benchmarks/faults.py [--world-sizes 2 4] [--seed N] [--stages forward ...] [--steps 23]

36 rows with a fault per world size (6 stages x 10, 20, 40 ms x 2 ranks) and 12 without, each a training of that many
processes on this machine. A busy machine is a fault of its own; run it on a quiet one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.faults import STAGES, Outcome, all_faults, run_fault


def main() -> int:
    """Run the rows and print the table; the exit status is 1 where a bound does not hold."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--world-sizes", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--stages", nargs="+", choices=[*STAGES, "none"], default=[*STAGES, "none"])
    parser.add_argument("--steps", type=int, default=23)
    options = parser.parse_args()
    good = True
    for world_size in options.world_sizes:
        rows = [f for f in all_faults(world_size, options.seed) if (f.stage or "none") in options.stages]
        outcomes = []
        print(f"\n{world_size} ranks, seed {options.seed}\n{HEADER}")
        for fault in rows:
            with tempfile.TemporaryDirectory() as directory:
                outcomes.append(run_fault(fault, Path(directory), steps=options.steps))
            print(as_row(outcomes[-1]), flush=True)
        good &= summarise(outcomes)
    return 0 if good else 1


HEADER = f"{'stage':20} {'ms':>4} {'rank':>4}   {'verdict':12} {'rank':>4}  {'stage':30} {'ms':>6}"


def as_row(outcome: Outcome) -> str:
    """One line: what was done, what was found."""
    fault, found = outcome.fault, outcome.straggler
    lost = "" if found.cause_ns_per_step is None else f"{found.cause_ns_per_step / 1e6:.1f}"
    named = "" if not found.ranks else ",".join(map(str, found.ranks))
    right = outcome.rank_right and (fault.stage is None or (outcome.stage_right and outcome.delay_right))
    cause = found.cause_stage or found.cause or ""
    return (
        f"{fault.stage or 'none':20} {fault.delay_ms:4.0f} {fault.slow_rank if fault.stage else '':>4}   "
        f"{found.verdict:12} {named:>4}  {cause:30} {lost:>6}{'' if right else '   WRONG'}"
    )


def summarise(outcomes: list[Outcome]) -> bool:
    """Print how many are right; whether the bounds beside them hold (scaled where not all rows were run)."""
    faulty = [o for o in outcomes if o.fault.stage]
    clean = [o for o in outcomes if not o.fault.stage]
    by_stage: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in faulty:
        by_stage[str(outcome.fault.stage)].append(outcome)
    good = True
    if faulty:
        right = sum(o.rank_right for o in faulty)
        good &= right >= 34 * len(faulty) / 36
        print(f"rank right: {right} of {len(faulty)} (at least 34 of 36)")
    for stage, rows in by_stage.items():
        right = sum(o.stage_right and o.delay_right for o in rows)
        good &= right >= 5 * len(rows) / 6
        print(f"  {stage}: stage named, with its time within 20 %: {right} of {len(rows)} (at least 5 of 6)")
    if clean:
        right = sum(o.rank_right for o in clean)
        good &= right >= 11 * len(clean) / 12
        print(f"nobody named without a fault: {right} of {len(clean)} (at least 11 of 12)")
    return good


if __name__ == "__main__":
    sys.exit(main())
