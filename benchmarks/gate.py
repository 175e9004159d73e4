"""How often `rankscope compare` calls noise a regression, and how often it sees a real one.

    python benchmarks/gate.py --pairs 20 --runs /tmp/gate-runs     # about 10 s per run on a quiet machine
    python benchmarks/gate.py --pairs 0                            # synthetic runs only

A pair is flagged if a headline figure (hidden communication, exposed communication, step duration) is significantly
worse. Real pairs are demo-size gloo runs of the same code, one straight after the other. Synthetic runs have one value
per step and figure: mean x (1 + run noise) x (1 + step noise), both normal, drawn anew for each figure.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rankscope.collector.demo import run_demo
from rankscope.gate.compare import compare
from rankscope.gate.significance import ASSUMED_RUN_NOISE, LEVEL
from rankscope.model.comparison import Comparison
from rankscope.model.snapshot import Baseline, Snapshot
from rankscope.pipeline import analyze_run, read_run
from rankscope.pipeline.saved import take_baseline

STEPS = 10
STEP_NOISE = 0.05
UNRECORDED_STEPS = 2
OVERLAP, COMMUNICATION_MS, DURATION_MS = 0.8, 10.0, 100.0
MOST_FALSE_ALARMS = 0.05
LEAST_POWER = 0.9


def main() -> int:
    """Print the tables; 0 if every criterion holds."""
    options = _parse_arguments()
    verdicts = []
    if options.pairs:
        verdicts.append(measure_real_pairs(options.pairs, options.runs))
    verdicts += [measure_false_alarms(options.synthetic), measure_power(options.synthetic)]
    return 0 if all(verdicts) else 1


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=20, help="pairs of real runs; 0 leaves them out")
    parser.add_argument(
        "--runs", type=Path, default=Path("gate-runs"), help="folder of real runs; those there are used"
    )
    parser.add_argument("--synthetic", type=int, default=200, help="synthetic pairs per line")
    return parser.parse_args()


def measure_real_pairs(number: int, folder: Path) -> bool:
    """Flagged pairs of repeated runs without a change; at most one may be."""
    print(f"\n{number} pairs of gloo runs of the same code ({STEPS} steps of 2 ranks)")
    print("pair   hidden communication   counts above   step duration [ms]   compute [ms]      flagged")
    worse = better = by_steps = 0
    for index in range(number):
        base, head = (_record(folder / f"{index:02d}{letter}") for letter in "ab")
        comparison = compare(base, head)
        rows = comparison.changed("worse") + comparison.changed("better")
        flags = [f"{row.figure.label} {row.direction}" for row in rows]
        worse += bool(comparison.changed("worse"))
        better += bool(comparison.changed("better"))
        by_steps += _would_permutation_flag(comparison)
        print(f"{index:>4}   {_describe(comparison)}   {', '.join(flags) or '-'}")
    print(f"worse: {worse} of {number}, better: {better} of {number}; at most 1 of 20 may be worse")
    print(f"the permutation test over the steps alone would flag {by_steps} of {number}")
    return worse * 20 <= max(number, 20)


def _would_permutation_flag(comparison: Comparison) -> bool:
    """Whether the steps of a headline figure differ by the permutation test, however little runs may be trusted."""
    judgements = [row.judgement for row in comparison.figures if row.is_headline and row.judgement]
    return any(judgement.p_value is not None and judgement.p_value <= LEVEL for judgement in judgements)


def _record(folder: Path) -> Baseline:
    if not folder.is_dir():
        run_demo(folder, world_size=2, bucket_cap_mb=4.0, steps=STEPS + UNRECORDED_STEPS)
    run = read_run(folder)
    return take_baseline(run, analyze_run(run))


def _describe(comparison: Comparison) -> str:
    rows = {row.name: row for row in comparison.figures}
    overlap, duration, compute = (rows[f"steady.{name}"] for name in ("overlap_ratio", "duration", "compute"))
    least = overlap.judgement.smallest if overlap.judgement and overlap.judgement.smallest else 0.0
    return (
        f"{overlap.base or 0:.3f} -> {overlap.head or 0:.3f}         {least:.3f}          "
        f"{(duration.base or 0) / 1e6:7.0f} -> {(duration.head or 0) / 1e6:<7.0f}  "
        f"{(compute.base or 0) / 1e6:5.0f} -> {(compute.head or 0) / 1e6:<5.0f}"
    )


def measure_false_alarms(number: int) -> bool:
    """Flagged synthetic pairs without a change, by run-to-run noise and runs in the baseline."""
    print(
        f"\nFalse alarms: {number} synthetic pairs without a change, {STEPS} steps, step noise {STEP_NOISE:.0%}"
    )
    print("run-to-run noise   baseline of 1 run   of 4 runs")
    kept = True
    for noise in (0.0, 0.01, ASSUMED_RUN_NOISE, 0.03, 0.05):
        shares = [_share_worse(number, runs, noise, loss=0.0) for runs in (1, 4)]
        print(f"{noise:>16.1%}   {shares[0]:>17.1%}   {shares[1]:>9.1%}")
        kept &= noise > ASSUMED_RUN_NOISE or shares[0] <= MOST_FALSE_ALARMS
    print(
        f"at most {MOST_FALSE_ALARMS:.0%} where one run stands for runs that differ by no more than 1.5 %: {_say(kept)}"
    )
    return kept


def measure_power(number: int) -> bool:
    """Flagged synthetic pairs with 10 % less overlap."""
    print(
        f"\nPower: {number} synthetic pairs, hidden communication x 0.9, {STEPS} steps, step noise {STEP_NOISE:.0%}"
    )
    print("run-to-run noise   baseline of 1 run   of 4 runs")
    kept = True
    for noise in (0.0, 0.01, ASSUMED_RUN_NOISE):
        shares = [_share_worse(number, runs, noise, loss=0.1) for runs in (1, 4)]
        print(f"{noise:>16.1%}   {shares[0]:>17.1%}   {shares[1]:>9.1%}")
        kept &= noise > 0 or shares[0] >= LEAST_POWER
    print(f"at least {LEAST_POWER:.0%} with step noise alone and one run as the baseline: {_say(kept)}")
    return kept


def _say(kept: bool) -> str:
    return "holds" if kept else "MISSED"


def _share_worse(number: int, base_runs: int, run_noise: float, loss: float) -> float:
    random = np.random.default_rng(20_241_130)
    flagged = 0
    for _ in range(number):
        base = Baseline(tool_version="", runs=[_make_run(random, run_noise, 0.0) for _ in range(base_runs)])
        head = Baseline(tool_version="", runs=[_make_run(random, run_noise, loss)])
        flagged += bool(compare(base, head).changed("worse"))
    return flagged / number


def _make_run(random: np.random.Generator, run_noise: float, loss: float) -> Snapshot:
    def draw(mean: float) -> npt.NDArray[np.float64]:
        of_run = 1 + run_noise * random.standard_normal()
        values: npt.NDArray[np.float64] = mean * of_run * (1 + STEP_NOISE * random.standard_normal(STEPS))
        return values

    overlap = np.clip(draw(OVERLAP * (1 - loss)), 0, 1)
    communication = draw(COMMUNICATION_MS)
    samples = {
        "overlap_ratio": overlap,
        "exposed_communication": (1 - overlap) * communication,
        "communication": communication,
        "duration": draw(DURATION_MS),
    }
    return Snapshot(
        name="synthetic",
        ranks=1,
        rows=1,
        steps=STEPS,
        figures={f"steady.{name}": float(values.mean()) for name, values in samples.items()},
        samples={name: values.tolist() for name, values in samples.items()},
    )


if __name__ == "__main__":
    raise SystemExit(main())
