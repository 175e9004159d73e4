"""Ours against HolisticTraceAnalysis on the same files, and how our cost grows.

    python benchmarks/peers.py                     54 MB and 306 MB, then growth
    python benchmarks/peers.py --only 54           one of: 54, 306, growth, processes

HTA loads a trace, then computes communication/computation overlap and the temporal breakdown; ours reads it and makes
the full report, in one process and as the command does it. Each starts in a process of its own, in turns, one after the
other; HTA may use all cores. Imports are left out of both, and stand beside. Memory is that of the largest process.
`pip install HolisticTraceAnalysis "pandas<3"` where it is absent.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from measuring import Sample, alternate, answer_if_asked, load_note, measure_once, median_of
from rankscope.testing.repeat import repeat_in_time

SHARED = Path(__file__).resolve().parents[2] / "shared" / "traces"
SMALL = SHARED / "many_allreduces_1of2" / "df_index_resolver.json.gz"
LARGE = SHARED / "nccl_ddp_buckets_1of2" / "nccl_data.json.gz"
RANKS = SHARED / "nanogpt_h100_8rank"
LARGE_REPEATS = 31
RANK_REPEATS = (6, 18)
GROWTH = (1, 4, 16)


def analyze_with_rankscope(folder: Path) -> None:
    """Reading and the full report, in one process."""
    from rankscope.pipeline import analyze

    analyze(folder)


def analyze_on_all_cores(folder: Path) -> None:
    """The same as the command does it: by a process on each core where the text is large enough."""
    from rankscope.pipeline import analyze

    analyze(folder, processes=0)


def read_with_two_processes(folder: Path) -> None:
    """Reading alone, with two processes."""
    from rankscope.readers.run_reader import ReadOptions, read_run

    read_run(folder, ReadOptions(processes=2))


def read_with_one_process(folder: Path) -> None:
    """Reading alone, in one process."""
    from rankscope.readers.run_reader import ReadOptions, read_run

    read_run(folder, ReadOptions(processes=1))


def analyze_with_hta(folder: Path) -> None:
    """Load, overlap and temporal breakdown, without plots."""
    from hta.trace_analysis import TraceAnalysis

    analysis = TraceAnalysis(trace_dir=str(folder))
    analysis.get_comm_comp_overlap(visualize=False)
    analysis.get_temporal_breakdown(visualize=False)


WORK = {
    "rankscope": analyze_with_rankscope,
    "rankscope, all cores": analyze_on_all_cores,
    "rankscope: read, 1 process": read_with_one_process,
    "rankscope: read, 2 processes": read_with_two_processes,
    "HTA": analyze_with_hta,
}


OURS = ("rankscope", "rankscope, all cores")
IMPORTS = {
    "rankscope": ("rankscope.pipeline", "rankscope.readers.run_reader"),
    "HTA": ("hta.trace_analysis",),
}


def compare_with_hta(source: Path, repeats: int, rounds: int) -> None:
    """Print times, memory and ratios on one file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        repeat_in_time(source, path, times=repeats)
        size_mb = path.stat().st_size / 1e6
        print(f"\n{size_mb:.0f} MB of JSON, {rounds} round(s) in turns, {load_note()}")
        samples = alternate(__file__, [*OURS, "HTA"], Path(folder), rounds=rounds, cores=0)
        for name, of_name in samples.items():
            _print_sample(name, of_name, size_mb)
        if "HTA" in samples:
            for ours in OURS:
                for field, word in (
                    ("wall_s", "wall time"),
                    ("cpu_s", "CPU time"),
                    ("peak_mib", "peak memory"),
                ):
                    ratio = median_of(samples["HTA"], field) / median_of(samples[ours], field)
                    print(f"HTA takes {ratio:6.1f} x the {word} of {ours}")
            whole = [
                sum(median_of(samples[n], f) for f in ("cpu_s", "import_s")) for n in ("HTA", "rankscope")
            ]
            print(f"HTA takes {whole[0] / whole[1]:6.1f} x our CPU time with the imports of both")


def _print_sample(name: str, samples: Sequence[Sample], size_mb: float) -> None:
    wall, cpu = median_of(samples, "wall_s"), median_of(samples, "cpu_s")
    peak = median_of(samples, "peak_mib")
    print(
        f"{name:30} wall {wall:8.2f} s  cpu {cpu:8.2f} s (+ {median_of(samples, 'import_s'):.2f} s of imports)  "
        f"{size_mb / cpu:7.1f} MB/s of CPU  peak {peak:7.0f} MiB "
        f"({peak * (1 << 20) / 1e6 / size_mb:.1f} x the file)"
    )


def measure_growth(rounds: int) -> None:
    """Print the cost with growing events, collectives and ranks, and the fitted exponents."""
    print(f"\ngrowth, {rounds} round(s), one core, CPU seconds less those of an empty run, {load_note()}")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        base = _empty_run_s(root / "empty", rounds)
        _fit("events", [_repeated(LARGE, root / f"events{n}", n) for n in GROWTH], rounds, base)
        _fit("collectives", [_repeated(SMALL, root / f"collectives{n}", n) for n in (1, 2, 4)], rounds, base)
        _fit("ranks", [_synthetic(root / f"ranks{n}", n) for n in (8, 32, 128)], rounds, base)


def _empty_run_s(folder: Path, rounds: int) -> float:
    folder.mkdir()
    (folder / "rank0.json").write_text('{"traceEvents": []}')
    return _cpu_s(folder, rounds)


def _cpu_s(folder: Path, rounds: int) -> float:
    samples = [measure_once(__file__, "rankscope", folder) for _ in range(rounds)]
    return min(sample.cpu_s for sample in samples)


def _repeated(source: Path, folder: Path, times: int) -> tuple[float, Path]:
    folder.mkdir()
    repeat_in_time(source, folder / "rank0.json", times=times)
    return float(times), folder


def _synthetic(folder: Path, ranks: int) -> tuple[float, Path]:
    from rankscope.testing.synth import ddp_run, write_run

    write_run(ddp_run(ranks=ranks), folder)
    return float(ranks), folder


def _fit(what: str, runs: Sequence[tuple[float, Path]], rounds: int, base_s: float) -> None:
    sizes = np.array([size for size, _ in runs])
    costs = np.array([_cpu_s(folder, rounds) - base_s for _, folder in runs])
    exponent = np.polyfit(np.log(sizes), np.log(costs), 1)[0]
    shown = ", ".join(f"x{size:.0f}: {cost:.2f} s" for size, cost in zip(sizes, costs, strict=True))
    print(f"{what:12} {shown}; exponent {exponent:.2f}")
    for _, folder in runs:
        shutil.rmtree(folder)


def measure_processes(rounds: int, repeats: int) -> None:
    """Print how much two processes gain on eight ranks, each the shared trace so many times over."""
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted(RANKS.glob("*.gz")):
            repeat_in_time(path, Path(folder) / path.stem, times=repeats)
        size_mb = sum(p.stat().st_size for p in Path(folder).iterdir()) / 1e6
        print(f"\n8 ranks, {size_mb:.0f} MB of JSON, {rounds} round(s) in turns, {load_note()}")
        one, two = [], []
        for _ in range(rounds):
            one.append(measure_once(__file__, "rankscope: read, 1 process", Path(folder), cores=1))
            two.append(measure_once(__file__, "rankscope: read, 2 processes", Path(folder), cores=2))
        _print_sample("read, one process, one core", one, size_mb)
        _print_sample("read, two processes, two cores", two, size_mb)
        print(f"two processes are {median_of(one, 'wall_s') / median_of(two, 'wall_s'):.2f} x as fast")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("54", "306", "growth", "processes"))
    options = parser.parse_args()
    if not SHARED.is_dir():
        sys.exit(f"{SHARED} is not here: the real traces are not part of the repository")
    chosen = {options.only} if options.only else {"54", "306", "growth", "processes"}
    if "54" in chosen:
        compare_with_hta(SMALL, 1, options.rounds)
    if "306" in chosen:
        compare_with_hta(LARGE, LARGE_REPEATS, min(options.rounds, 2))
    if "growth" in chosen:
        measure_growth(options.rounds)
    if "processes" in chosen:
        for repeats in RANK_REPEATS:
            measure_processes(options.rounds, repeats)


if __name__ == "__main__":
    answer_if_asked(WORK, IMPORTS)
    main()
