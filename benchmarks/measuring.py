"""Measurements of one piece of work in a process of its own, and their medians.

A script that measures calls `answer_if_asked(WORK)` first: in a child process that runs one entry of WORK and ends.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

Work = Callable[[Path], object]
_MIB_PER_KIB = 1 / 1024


class AbsentError(Exception):
    """A peer that is not installed here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One run of one piece of work: seconds, and peak resident memory in MiB.

    Attributes:
        wall_s, cpu_s: of the work, imports left out.
        import_s: CPU seconds of the imports before it.
        peak_mib: of the whole process.
    """

    wall_s: float
    cpu_s: float
    import_s: float
    peak_mib: float


def answer_if_asked(work: Mapping[str, Work], imports: Mapping[str, Sequence[str]] | None = None) -> None:
    """In a child process: do the work that is asked for, print what it took, and exit.

    Args:
        work: name -> what to measure.
        imports: beginning of a name -> modules to import before the clock starts.
    """
    if sys.argv[1:2] != ["--one"]:
        return
    name, path, cores = sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])
    if hasattr(os, "sched_setaffinity") and cores:
        os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:cores]))
    begun = _cpu_s()
    try:
        for module in (
            m for start, modules in (imports or {}).items() if name.startswith(start) for m in modules
        ):
            import_module(module)
        before, wall = _cpu_s(), time.perf_counter()
        work[name](path)
    except (ImportError, AbsentError) as error:
        print(json.dumps({"absent": str(error)}))
        sys.exit()
    sample = {
        "wall_s": time.perf_counter() - wall,
        "cpu_s": _cpu_s() - before,
        "import_s": before - begun,
        "peak_mib": max(_peak_kib(resource.RUSAGE_SELF), _peak_kib(resource.RUSAGE_CHILDREN)) * _MIB_PER_KIB,
    }
    print(json.dumps(sample))
    sys.exit()


def _cpu_s() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _peak_kib(who: int) -> int:
    return resource.getrusage(who).ru_maxrss


def measure_once(script: str, name: str, path: Path, *, cores: int = 1, timeout_s: int = 3_000) -> Sample:
    """One run of an entry of the script's WORK on `cores` cores (0: all).

    Raises:
        AbsentError: it needs something that is not installed.
        RuntimeError: it failed.
    """
    words = [sys.executable, script, "--one", name, str(path), str(cores)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=timeout_s)
    if done.returncode != 0:
        raise RuntimeError(f"{name} on {path} failed:\n{done.stderr[-2000:]}")
    answer = json.loads(done.stdout.strip().splitlines()[-1])
    if "absent" in answer:
        raise AbsentError(answer["absent"])
    return Sample(**answer)


def alternate(
    script: str, names: Sequence[str], path: Path, *, rounds: int, cores: int = 1
) -> dict[str, list[Sample]]:
    """Samples of each piece of work, A B C A B C ..., so that whatever else the machine does hits all alike."""
    samples: dict[str, list[Sample]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            if name not in samples:
                continue
            try:
                samples[name].append(measure_once(script, name, path, cores=cores))
            except AbsentError as error:
                print(f"  {name}: left out, {error}; install it into this environment to compare with it")
                del samples[name]
    return samples


def median_of(samples: Sequence[Sample], field: str) -> float:
    """Median of a field of samples."""
    return float(statistics.median(getattr(sample, field) for sample in samples))


def spread_of(samples: Sequence[Sample], field: str) -> str:
    """Lowest and highest value of a field, as text."""
    values = sorted(getattr(sample, field) for sample in samples)
    return f"{values[0]:.2f}-{values[-1]:.2f}"


def table_line(name: str, samples: Sequence[Sample], size_mb: float) -> str:
    """A line of a table: rates by CPU time and by wall time, their spread, peak memory."""
    cpu, wall = median_of(samples, "cpu_s"), median_of(samples, "wall_s")
    return (
        f"{name:34} {size_mb / cpu:8.0f} MB/s cpu  {size_mb / wall:8.0f} MB/s wall  cpu {cpu:7.2f} s "
        f"({spread_of(samples, 'cpu_s')})  peak {median_of(samples, 'peak_mib'):6.0f} MiB"
    )


def load_note() -> str:
    """The load of the machine, since it is part of every number measured on it."""
    return f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
