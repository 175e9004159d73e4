"""Large runs as tables, without files: tensor and data groups, one slow rank, clocks that are off."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankscope.model.categories import Category, EventClass
from rankscope.model.intervals import Int64
from rankscope.model.run import ProcessGroup, Run, TraceWindow
from rankscope.model.table import CPU_DEVICE, NO_ID, Arguments, Lane, TraceTable

TENSOR = 8
PER_STEP = 20
US = 1_000
_WORK_NS = 400 * US
_TRANSFER_NS = 100 * US
_NOISE_NS = 20 * US
_JITTER_NS = 5 * US
_CLOCK_NS = 5_000 * US
_LAUNCH_NS = 4 * US
_LEAD_NS = 10 * US
_ORIGIN_NS = 1_733_000_009_000_000_000
_NAMES = (
    "cudaLaunchKernel",
    "gemm",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
)
_LAUNCH, _GEMM, _REDUCE = range(3)
_TEXTS = ("allreduce", "Float", "tensor", "data", "")
_ELEMENTS = (4_194_304, 16_777_216)


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeRun:
    """A run and its answers.

    Attributes:
        run: the run.
        offsets_ns: rank -> what its clock shows more than true time.
        slow: the slow rank.
        slow_ns: what it works longer in each step.
    """

    run: Run
    offsets_ns: dict[int, int]
    slow: int
    slow_ns: int


def large_run(
    *, ranks: int, collectives: int, per_step: int = PER_STEP, slow: int = 3, seed: int = 0
) -> LargeRun:
    """A run in which every rank computes and all-reduces by turns, over its tensor and its data group.

    Hosts hold the ranks of a tensor group and have one clock, up to 5 ms off. Kernels of equal ranks differ by up
    to 20 us, ends of one collective by up to 5 us; `slow` works 30 % longer before every tensor all-reduce.
    Kernels carry no sequence numbers.

    Args:
        ranks: a multiple of 8.
        collectives: on each rank, a multiple of `per_step`.
        per_step: collectives in a step.
        slow: the slow rank.
        seed: of the noise.
    """
    random = np.random.default_rng(seed)
    arrivals, ends = _play(random, ranks, collectives, slow)
    clocks = np.repeat(random.integers(-_CLOCK_NS, _CLOCK_NS, ranks // TENSOR), TENSOR)
    clocks[:TENSOR] = 0
    windows = [
        _window(rank, ranks, arrivals[:, rank], ends[:, rank], int(clocks[rank]), per_step)
        for rank in range(ranks)
    ]
    return LargeRun(
        run=Run(name="large", source="made", windows=tuple(windows)),
        offsets_ns=dict(enumerate(clocks.tolist())),
        slow=slow,
        slow_ns=per_step // 2 * (3 * _WORK_NS // 10),
    )


def _play(random: np.random.Generator, ranks: int, collectives: int, slow: int) -> tuple[Int64, Int64]:
    """(arrivals, ends) in true time, int64[collectives, ranks]; even ones are of tensor, odd ones of data groups."""
    work = _WORK_NS + random.integers(0, _NOISE_NS, (collectives, ranks))
    work[::2, slow] += 3 * _WORK_NS // 10
    arrivals, ends = np.empty_like(work), np.empty_like(work)
    now = np.zeros(ranks, np.int64)
    for number in range(collectives):
        arrivals[number] = now + work[number]
        by_group = arrivals[number].reshape(-1, TENSOR)
        last = by_group.max(axis=1 - number % 2, keepdims=True)
        now = np.broadcast_to(last, by_group.shape).reshape(-1) + _TRANSFER_NS
        ends[number] = now + random.integers(0, _JITTER_NS, ranks)
    return arrivals, ends


def _window(rank: int, ranks: int, arrivals: Int64, ends: Int64, clock_ns: int, per_step: int) -> TraceWindow:
    first = rank // TENSOR * TENSOR
    groups = (
        ProcessGroup(name="tensor", description="tensor", ranks=tuple(range(first, first + TENSOR))),
        ProcessGroup(name="data", description="data", ranks=tuple(range(rank % TENSOR, ranks, TENSOR))),
    )
    return TraceWindow(
        rank=rank,
        rank_source="distributedInfo",
        window=0,
        file=f"rank{rank}.json",
        table=_table(arrivals, ends, _ORIGIN_NS + clock_ns, per_step, (TENSOR, ranks // TENSOR)),
        world_size=ranks,
        backend="nccl",
        groups=groups,
        host=f"host{rank // TENSOR}",
    )


def _table(arrivals: Int64, ends: Int64, zero_ns: int, per_step: int, sizes: tuple[int, int]) -> TraceTable:
    count = len(arrivals)
    steps = count // per_step
    begins = np.concatenate([[0], ends[:-1]])
    step_starts = begins[::per_step]
    step_ends = np.append(step_starts[1:], ends[-1])
    compute_ids, reduce_ids = np.arange(1, count + 1), np.arange(count + 1, 2 * count + 1)
    start = np.concatenate([step_starts, begins - _LEAD_NS // 2, arrivals - _LEAD_NS, begins, arrivals])
    length = np.concatenate(
        [
            step_ends - step_starts,
            np.full(2 * count, _LAUNCH_NS),
            arrivals - begins,
            ends - arrivals,
        ]
    )
    counts = (steps, count, count, count, count)
    start[:1] -= _LEAD_NS  # the first step begins before its first launch
    length[:1] += _LEAD_NS
    category = (
        Category.USER_ANNOTATION,
        Category.RUNTIME,
        Category.RUNTIME,
        Category.KERNEL,
        Category.KERNEL,
    )
    classes = (
        EventClass.ANNOTATION,
        EventClass.HOST,
        EventClass.HOST,
        EventClass.COMPUTE,
        EventClass.COMMUNICATION,
    )
    none = np.full(steps, NO_ID)
    name = np.concatenate(
        [
            np.arange(len(_NAMES), len(_NAMES) + steps),
            np.repeat([_LAUNCH, _LAUNCH, _GEMM, _REDUCE], count),
        ]
    )
    order = np.argsort(start, kind="stable")
    reduces = np.flatnonzero(order >= steps + 3 * count)
    return TraceTable(
        start_ns=start[order] + zero_ns,
        duration_ns=length[order],
        category=np.repeat(np.array(category, np.uint8), counts)[order],
        event_class=np.repeat(np.array(classes, np.uint8), counts)[order],
        name=name.astype(np.int32)[order],
        lane=np.repeat(np.array([0, 0, 0, 1, 2], np.int32), counts)[order],
        device=np.repeat(np.array([CPU_DEVICE, CPU_DEVICE, CPU_DEVICE, 0, 0], np.int16), counts)[order],
        correlation=np.concatenate([none, compute_ids, reduce_ids, compute_ids, reduce_ids])[order],
        external_id=np.full(len(order), NO_ID),
        names=(*_NAMES, *(f"ProfilerStep#{n}" for n in range(steps))),
        lanes=(
            Lane(pid=1, tid=1),
            Lane(pid=0, tid=7, device=0, stream=7),
            Lane(pid=0, tid=20, device=0, stream=20),
        ),
        arguments=_arguments(reduces, sizes),
    )


def _arguments(row: Int64, sizes: tuple[int, int]) -> Arguments:
    """Arguments of the all-reduces at some rows, by turns over the tensor and the data group."""
    count = len(row)
    turn = np.arange(count) % 2
    absent32, absent64 = np.full(count, NO_ID, np.int32), np.full(count, NO_ID)
    elements = np.array(_ELEMENTS)[turn]
    return Arguments(
        row=row,
        collective=np.zeros(count, np.int32),
        dtype=np.ones(count, np.int32),
        in_elements=elements,
        out_elements=elements,
        group_name=(2 + turn).astype(np.int32),
        group_description=(2 + turn).astype(np.int32),
        group_ranks=absent32,
        group_size=np.array(sizes)[turn],
        sequence=absent64,
        inputs=absent32,
        source=absent64,
        destination=absent64,
        texts=_TEXTS,
    )
