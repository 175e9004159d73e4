"""Prediction, measured: step time over bucket_cap_mb of real DDP on a limited network, against what one run predicts.

    sudo python benchmarks/bucket_cap.py [--quick] [--picture bucket_cap.svg]

Each setting (ranks x rate x kind of model) is a gloo DDP job in a network namespace of its own whose loopback is
limited with `tc ... tbf`. One run at one cap is recorded with `Collector(calibrate=True)`; from it the step time at
every other cap is predicted. Measured: rounds over all caps, alternately up and down; only ratios to the recorded
cap's step time of the same round count, and the median of the rounds stands in the table. Needs root, iproute2 and
torch.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module
    from torch.optim import Optimizer

RECORDED_CAP_MB = 1.0
CAPS_MB = (0.25, 1.0, 2.0, 4.0, 5.0, 25.0, 100.0)
RATES_MBIT = {2: (500, 1000, 2000), 4: (1500, 3000, 6000)}
KINDS = ("waiting", "real")
BURST_KB = 128
SYSCTLS = {
    # A socket that may fill the limited queue for a second would measure that queue, and no network.
    "net.ipv4.tcp_wmem": "4096 65536 524288",
    "net.ipv4.tcp_rmem": "4096 65536 524288",
    "net.ipv4.tcp_slow_start_after_idle": "0",
    "net.ipv4.tcp_no_metrics_save": "1",
}
SPREAD_WORTH_PREDICTING = 0.20


@dataclass(frozen=True)
class Setting:
    """One job: ranks, rate of the loopback in Mbit/s, kind of layers."""

    ranks: int
    rate_mbit: int
    kind: str

    @property
    def name(self) -> str:
        """A line's head in the tables."""
        return f"{self.ranks} ranks {self.rate_mbit:>5} Mbit/s {self.kind:<7}"


@dataclass
class Outcome:
    """Measured and predicted ratios to the recorded cap's step time."""

    setting: Setting
    measured: dict[float, list[float]] = field(default_factory=dict)
    predicted: dict[float, float] = field(default_factory=dict)
    recommended: float | None = None
    step_ms: float = 0.0
    notes: str = ""

    def ratio(self, cap: float) -> float:
        """Median measured ratio of a cap."""
        return median(self.measured[cap])

    def errors(self) -> dict[float, float]:
        """Relative error of each predicted ratio but the recorded cap's."""
        return {
            cap: abs(self.predicted[cap] / self.ratio(cap) - 1)
            for cap in self.measured
            if cap != RECORDED_CAP_MB and cap in self.predicted
        }

    def naive_errors(self) -> dict[float, float]:
        """Relative error of predicting that no cap makes a difference."""
        return {cap: abs(1 / self.ratio(cap) - 1) for cap in self.measured if cap != RECORDED_CAP_MB}

    @property
    def spread(self) -> float:
        """Slowest over fastest measured cap, less 1."""
        ratios = [self.ratio(cap) for cap in self.measured]
        return max(ratios) / min(ratios) - 1

    @property
    def regret(self) -> float | None:
        """How much slower the recommended cap is than the best measured one; None without a recommendation."""
        if self.recommended not in self.measured:
            return None
        return self.ratio(self.recommended) / min(map(self.ratio, self.measured)) - 1

    @property
    def scatter(self) -> float:
        """Median over caps of the rounds' relative deviation from their median."""
        return median(
            median(abs(r / self.ratio(cap) - 1) for r in ratios) for cap, ratios in self.measured.items()
        )


@contextmanager
def limited_namespace(namespace: str, rate_mbit: int) -> Iterator[list[str]]:
    """A network namespace whose loopback carries `rate_mbit` Mbit/s; yields the words that run a command in it."""
    inside = ["ip", "netns", "exec", namespace]
    run(["ip", "netns", "add", namespace])
    try:
        for name, value in SYSCTLS.items():
            run([*inside, "sysctl", "-q", "-w", f"{name}={value}"])
        run([*inside, "ip", "link", "set", "lo", "mtu", "9000", "up"])
        tbf = f"tbf rate {rate_mbit}mbit burst {BURST_KB}kb limit 64mb".split()
        run([*inside, "tc", "qdisc", "add", "dev", "lo", "root", *tbf])
        yield inside
    finally:
        run(["ip", "netns", "delete", namespace])


def run(command: Sequence[str]) -> None:
    """Run a command of the system, and fail with what it says."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()}")


def measure(setting: Setting, folder: Path, options: argparse.Namespace) -> Outcome:
    """Train a setting in its own namespace, read its trace, and put both side by side."""
    with limited_namespace(f"rankscope_{os.getpid()}", setting.rate_mbit) as inside:
        times = train_all(inside, setting, folder, options)
    outcome = Outcome(setting)
    for round_ in times:
        for cap, seconds in round_.items():
            outcome.measured.setdefault(float(cap), []).append(seconds / round_[str(RECORDED_CAP_MB)])
    outcome.step_ms = 1e3 * median(round_[str(RECORDED_CAP_MB)] for round_ in times)
    add_predictions(outcome, folder / "run")
    return outcome


def train_all(
    inside: list[str], setting: Setting, folder: Path, options: argparse.Namespace
) -> list[dict[str, float]]:
    """Seconds per step of each cap, in every round, as rank 0 measured them."""
    result, store = folder / "times.json", folder / "store"
    command = [
        *inside, sys.executable, __file__, "--worker", str(folder), "--kind", setting.kind,
        "--world-size", str(setting.ranks), "--store", str(store), "--rounds", str(options.rounds),
        "--steps", str(options.steps), "--caps", ",".join(map(str, options.caps)),
    ]  # fmt: skip
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    logs = [folder / f"stderr_{rank}" for rank in range(setting.ranks)]
    ranks = []
    try:
        for rank, log in enumerate(logs):
            with log.open("wb") as stderr:
                ranks.append(
                    subprocess.Popen(
                        [*command, "--rank", str(rank)], stdout=stderr, stderr=stderr, env=environment
                    )
                )
        for rank, process in enumerate(ranks):
            if process.wait(timeout=options.timeout):
                raise SystemExit(f"{setting.name}: rank {rank} failed:\n{logs[rank].read_text()[-2000:]}")
    finally:
        for process in ranks:
            process.kill()
            process.wait()
    loaded: list[dict[str, float]] = json.loads(result.read_text())
    return loaded


def add_predictions(outcome: Outcome, trace: Path) -> None:
    """Ratios that the recorded run predicts."""
    from rankscope.pipeline.advice import AdviseOptions, advise_run
    from rankscope.pipeline.analyze import analyze_fully
    from rankscope.readers.run_reader import read_run

    found = read_run(trace)
    analysis = analyze_fully(found)
    options = AdviseOptions(caps_mb=tuple(sorted(outcome.measured)))
    advice = advise_run(found, analysis.buckets, analysis.together, analysis.report.steps, options)
    assert advice is not None  # noqa: S101 - the job is DDP
    steps = {p.bucket_cap_mb: p.step_ns for p in advice.bucket_cap_mb.predictions}
    if RECORDED_CAP_MB in steps:
        outcome.predicted = {cap: ns / steps[RECORDED_CAP_MB] for cap, ns in steps.items()}
    outcome.recommended = (
        advice.bucket_cap_mb.best if advice.bucket_cap_mb.best is not None else RECORDED_CAP_MB
    )
    network = advice.network
    outcome.notes = f"{advice.verdict}: {advice.reason}" + (
        f"; latency {network.latency_ns / 1e6:.2f} ms, bus {network.bus_bandwidth_gbps or 0:.3f} GB/s, fit "
        f"{100 * network.deviation_ratio:.0f} %, compute x {advice.compute_slowdown or 1:.2f}, transfers x "
        f"{advice.transfer_slowdown or 1:.2f}, replay off by {100 * (advice.replay_error_ratio or 0):+.1f} %"
        if network
        else ""
    )


def work(options: argparse.Namespace) -> None:
    """One rank: record one run at the recorded cap, then measure every cap in every round."""
    import torch
    import torch.distributed as dist

    from rankscope import Collector

    torch.set_num_threads(1)
    torch.manual_seed(options.rank)
    store = f"file://{options.store}"
    dist.init_process_group("gloo", init_method=store, rank=options.rank, world_size=options.world_size)
    step = build_step(options.kind)
    with Collector(
        Path(options.worker) / "run", wait=8, warmup=1, active=5, repeat=2, calibrate=True
    ) as collector:
        ddp = wrap(step.model, RECORDED_CAP_MB)
        collector.watch(ddp)
        for _ in range(28):
            step(ddp)
            collector.step()
    del ddp
    rounds = []
    for number in range(options.rounds):
        caps = options.caps if number % 2 == 0 else options.caps[::-1]
        rounds.append({str(cap): time_cap(step, cap, options.steps) for cap in caps})
    if options.rank == 0:
        (Path(options.worker) / "times.json").write_text(json.dumps(rounds))
    dist.destroy_process_group()


def time_cap(step: Step, cap: float, steps: int) -> float:
    """Seconds per step at a cap: the median of `steps`, after one before the rebuild and one to settle."""
    import torch.distributed as dist

    ddp = wrap(step.model, cap)
    for _ in range(2):
        step(ddp)
    dist.barrier()
    times = []
    for _ in range(steps):
        begin = time.perf_counter()
        step(ddp)
        times.append(time.perf_counter() - begin)
    return median(times)


def wrap(model: Module, cap: float) -> Module:
    """DDP around the model with a cap."""
    from torch.nn.parallel import DistributedDataParallel

    return DistributedDataParallel(model, bucket_cap_mb=cap, init_sync=False)


@dataclass
class Step:
    """A training step: forward, backward, update."""

    model: Module
    optimizer: Optimizer
    samples: Tensor

    def __call__(self, ddp: Module) -> None:
        """Train once."""
        self.optimizer.zero_grad(set_to_none=True)
        ddp(self.samples).sum().backward()
        self.optimizer.step()


def build_step(kind: str) -> Step:
    """A model of 6.75 MiB whose layers compute, or wait for a known time."""
    import torch

    shapes = (
        [(256, 256)] * 4 + [(256, 512), (512, 256), (256, 512)] + [(512, 512)] * 2 + [(512, 768), (768, 256)]
    )
    if kind == "waiting":
        model = torch.nn.Sequential(*(waiting_layer(a * b, 0.003, 0.009) for a, b in shapes))
        samples = torch.ones(1, requires_grad=True)
    else:
        model = torch.nn.Sequential(*(torch.nn.Linear(a, b, bias=False) for a, b in shapes))
        samples = torch.ones(512, 256) / 256
    return Step(model, torch.optim.SGD(model.parameters(), lr=1e-6), samples)


def waiting_layer(elements: int, forward_s: float, backward_s: float) -> Module:
    """A layer that computes nothing and takes its time: only its gradient is real."""
    import torch

    class Wait(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: Tensor, weight: Tensor) -> Tensor:
            ctx.size = weight.shape  # type: ignore[attr-defined]
            time.sleep(forward_s)
            return x.clone()

        @staticmethod
        def backward(ctx: object, gradient: Tensor) -> tuple[Tensor, Tensor]:
            time.sleep(backward_s)
            return gradient, torch.zeros(ctx.size)  # type: ignore[attr-defined]

    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(elements))

        def forward(self, x: Tensor) -> Tensor:
            return Wait.apply(x, self.weight)  # type: ignore[no-any-return,no-untyped-call]

    return Layer()


def print_table(outcomes: Sequence[Outcome]) -> None:
    """Measured and predicted ratios, errors, and the recommended cap of each setting."""
    for outcome in outcomes:
        print(f"\n{outcome.setting.name}  step {outcome.step_ms:.0f} ms at {RECORDED_CAP_MB:g} MiB")
        print(f"  {outcome.notes}")
        print("  cap MiB    " + "".join(f"{cap:>9g}" for cap in sorted(outcome.measured)))
        for name, values in (
            ("measured ", {cap: outcome.ratio(cap) for cap in outcome.measured}),
            ("predicted", outcome.predicted),
        ):
            cells = "".join(
                f"{values[cap]:>9.3f}" if cap in values else "      n/a" for cap in sorted(outcome.measured)
            )
            print(f"  {name}  {cells}")
        print(
            f"  scatter of repeats {100 * outcome.scatter:.1f} %, spread over caps {100 * outcome.spread:.0f} %"
        )


def print_verdict(outcomes: Sequence[Outcome]) -> bool:
    """The errors of all settings against what is wanted; whether all of it holds."""
    print("\nsetting                        median   worst  'ratio 1'  spread  recommended  slower than best")
    holds = True
    for outcome in outcomes:
        errors, naive = list(outcome.errors().values()), list(outcome.naive_errors().values())
        if not errors:
            print(f"{outcome.setting.name}   no prediction: {outcome.notes}")
            holds = False
            continue
        wanted = 0.05 if outcome.setting.kind == "waiting" else 0.10
        failed = [
            text
            for text, is_bad in (
                ("median", median(errors) > wanted),
                ("worst", max(errors) > 0.25),
                ("ratio 1", outcome.spread > SPREAD_WORTH_PREDICTING and median(errors) > median(naive) / 2),
                ("recommended", outcome.regret is None or outcome.regret > 0.05),
            )
            if is_bad
        ]
        holds = holds and not failed
        print(
            f"{outcome.setting.name}  {100 * median(errors):6.1f} % {100 * max(errors):5.1f} %   "
            f"{100 * median(naive):6.1f} % {100 * outcome.spread:5.0f} % {outcome.recommended or 0:>9g} MiB "
            f"{100 * (outcome.regret or 0):9.1f} %  {'ok' if not failed else 'MISSED: ' + ', '.join(failed)}"
        )
    return holds


def draw(outcomes: Sequence[Outcome], path: Path) -> None:
    """One small plot per setting, as SVG: measured medians with their range, and the prediction as a line."""
    columns, wide, high = 2, 460, 240
    rows = -(-len(outcomes) // columns)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{columns * wide}" height="{rows * high}" '
        'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>'
    ]
    for place, outcome in enumerate(outcomes):
        left, top = (place % columns) * wide, (place // columns) * high
        parts.append(f'<g transform="translate({left},{top})">{plot(outcome, wide, high)}</g>')
    path.write_text("\n".join([*parts, "</svg>"]), encoding="utf-8")


def plot(outcome: Outcome, wide: int, high: int) -> str:
    """The inside of one plot: ratio to the recorded cap's step over the logarithm of the cap."""
    caps = sorted(outcome.measured)
    values = [r for ratios in outcome.measured.values() for r in ratios] + list(outcome.predicted.values())
    low, top = min(values), max(values)

    def x(cap: float) -> float:
        return 50 + (wide - 80) * math.log(cap / caps[0]) / math.log(caps[-1] / caps[0])

    def y(ratio: float) -> float:
        return high - 40 - (high - 75) * (ratio - low) / max(top - low, 1e-9)

    title = f"{outcome.setting.name.strip()}: measured (dots, range) and predicted (line)"
    parts = [f'<text x="50" y="18">{title}</text><text x="{wide // 2}" y="{high - 6}">bucket_cap_mb</text>']
    parts += [f'<text x="8" y="{y(v):.0f}">{v:.2f}</text>' for v in (low, 1.0, top)]
    for cap in caps:
        ratios = outcome.measured[cap]
        parts.append(f'<text x="{x(cap) - 8:.0f}" y="{high - 22}">{cap:g}</text>')
        ends = f'x1="{x(cap):.1f}" x2="{x(cap):.1f}" y1="{y(min(ratios)):.1f}" y2="{y(max(ratios)):.1f}"'
        parts.append(f'<line {ends} stroke="#888"/>')
        parts.append(f'<circle cx="{x(cap):.1f}" cy="{y(median(ratios)):.1f}" r="4" fill="#2563eb"/>')
    line = " ".join(f"{x(c):.1f},{y(outcome.predicted[c]):.1f}" for c in caps if c in outcome.predicted)
    parts.append(f'<polyline points="{line}" fill="none" stroke="#dc2626" stroke-width="2"/>')
    return "".join(parts)


def obstacle() -> str | None:
    """Why the benchmark cannot run here."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    missing = [tool for tool in ("ip", "tc") if shutil.which(tool) is None]
    return f"{' and '.join(missing)} not found: install iproute2" if missing else None


def parse_arguments() -> argparse.Namespace:
    """The options of the benchmark, and of one rank of it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="one rate and three rounds: about 4 minutes")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=9, help="measured steps per cap and round")
    parser.add_argument(
        "--caps", type=lambda text: [float(c) for c in text.split(",")], default=list(CAPS_MB)
    )
    parser.add_argument("--only", default="", help="settings whose name holds this text")
    parser.add_argument("--picture", type=Path, default=Path("bucket_cap.svg"))
    parser.add_argument("--keep", type=Path, help="keep traces and times in this folder")
    parser.add_argument("--timeout", type=float, default=300, help="seconds per setting")
    for name, kind in (("worker", str), ("kind", str), ("store", str), ("rank", int), ("world-size", int)):
        parser.add_argument(f"--{name}", type=kind, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    """Measure all settings; 1 if a bound is missed."""
    options = parse_arguments()
    if options.worker:
        work(options)
        return 0
    reason = obstacle()
    if reason:
        print(f"skipped: {reason}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the namespace and the ranks go too
    settings = [
        Setting(ranks, rate, kind)
        for ranks, rates in RATES_MBIT.items()
        for rate in (rates[1:2] if options.quick else rates)
        for kind in KINDS
    ]
    if options.quick:
        options.rounds = min(options.rounds, 3)
    outcomes = []
    for setting in settings:
        if options.only not in setting.name:
            continue
        with tempfile.TemporaryDirectory(prefix="bucket_cap_") as scratch:
            folder = (
                Path(scratch)
                if options.keep is None
                else options.keep / setting.name.replace(" ", "_").replace("/", "")
            )
            folder.mkdir(parents=True, exist_ok=True)
            begin = time.perf_counter()
            outcomes.append(measure(setting, folder, options))
            print(
                f"{setting.name}: measured in {time.perf_counter() - begin:.0f} s",
                file=sys.stderr,
                flush=True,
            )
    print_table(outcomes)
    holds = print_verdict(outcomes)
    draw(outcomes, options.picture)
    print(f"picture: {options.picture}")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
