"""The answers of a DDP run, by arithmetic on its plan; docs of the recurrences stand at `ddp_run`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rankscope.testing.expected import ExpectedBucket, ExpectedCollective, ExpectedMeasures
from rankscope.testing.program import (
    ACCUMULATE_NS,
    BUCKET_HOST_NS,
    BUCKET_LEAD_NS,
    HOST_OVERHEAD_NS,
    LAUNCH_DELAY_NS,
)
from rankscope.testing.scenarios.cursor import Call, Cursor
from rankscope.testing.scenarios.ddp_plan import ELEMENT_BYTES, DdpPlan
from rankscope.testing.scenarios.parts import DEFAULT_GROUP


@dataclass(frozen=True, slots=True, kw_only=True)
class _Own:
    """One rank's own times in a step, which no other rank can change.

    Attributes:
        first_ns: start of its first device event.
        ready_ns, calls: per bucket.
        backward_end_ns: end of its backward compute.
        host_ns: its host thread after the last launch of backward.
    """

    first_ns: int
    ready_ns: tuple[int, ...]
    calls: tuple[Call, ...]
    backward_end_ns: int
    host_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Transfers:
    """Per bucket: start and end on each rank."""

    started_ns: tuple[dict[int, int], ...]
    finished_ns: tuple[dict[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepAnswer:
    """The answers of one step: per rank its measures, its first and last event, and all buckets."""

    measures: dict[int, ExpectedMeasures]
    first_ns: dict[int, int]
    end_ns: dict[int, int]
    buckets: tuple[ExpectedBucket, ...]
    collectives: tuple[ExpectedCollective, ...]


def answer_steps(plan: DdpPlan) -> dict[int, StepAnswer]:
    """Step -> its answers. Each rank starts a step where its last one ended."""
    starts = dict.fromkeys(range(plan.ranks), 0)
    answers = {}
    for number in plan.step_numbers:
        answers[number] = _answer_step(plan, number, starts)
        starts = answers[number].end_ns
    return answers


def makespan_ns(plan: DdpPlan) -> int:
    """Nanoseconds from the start of the run to the last rank's end."""
    return max(answer_steps(plan)[plan.step_numbers[-1]].end_ns.values())


def cost_ns_per_step(plan: DdpPlan, ranks: tuple[int, ...]) -> int:
    """What the extras of these ranks cost each step: the makespan with them minus the one without."""
    others = {rank: extra for rank, extra in plan.extras.items() if rank not in ranks}
    return (makespan_ns(plan) - makespan_ns(replace(plan, extras=others))) // plan.steps


def _answer_step(plan: DdpPlan, number: int, starts: dict[int, int]) -> StepAnswer:
    own = {rank: _own_times(plan, number, rank, starts[rank]) for rank in starts}
    transfers = _transfer(plan, number, own)
    last_ns = {rank: max(times[rank] for times in transfers.finished_ns) for rank in own}
    compute_end_ns = {rank: max(last_ns[rank], own[rank].backward_end_ns) for rank in own}
    if plan.optimizer_ns and not plan.on_cpu:
        for rank, times in own.items():
            cursor = Cursor(name=plan.name, host_ns=times.host_ns, device_ns=compute_end_ns[rank])
            cursor.run(plan.optimizer_ns)
    return StepAnswer(
        measures={rank: _measure(plan, rank, own[rank], transfers) for rank in own},
        first_ns={rank: times.first_ns for rank, times in own.items()},
        end_ns={rank: compute_end_ns[rank] + plan.optimizer_ns for rank in own},
        buckets=_buckets(plan, number, own, transfers),
        collectives=_collectives(plan, number, transfers),
    )


def _own_times(plan: DdpPlan, number: int, rank: int, start_ns: int) -> _Own:
    host_ns = start_ns + plan.input_ns + plan.slower_by_ns(rank, "input", "host")
    first_ns = host_ns if plan.on_cpu else host_ns + LAUNCH_DELAY_NS
    cursor = Cursor(name=plan.name, host_ns=host_ns, device_ns=first_ns, on_cpu=plan.on_cpu)
    cursor.run(plan.copy_ns + plan.slower_by_ns(rank, "memory"))
    cursor.run(plan.slower_by_ns(rank, "work"))
    cursor.run(plan.forward_ns + plan.slower_by_ns(rank, "compute"))
    ready: list[int] = []
    calls: list[Call] = []
    pieces = iter(plan.backward_ns)
    for bucket in plan.buckets_of(number):
        for _ in bucket[:-1]:
            cursor.run(next(pieces))
            cursor.hold(ACCUMULATE_NS)
        cursor.run(next(pieces))
        ready.append(cursor.device_ns)
        calls.append(_call_bucket(plan, cursor))
    cursor.run(next(pieces, 0))
    return _Own(
        first_ns=first_ns,
        ready_ns=tuple(ready),
        calls=tuple(calls),
        backward_end_ns=cursor.device_ns,
        host_ns=cursor.host_ns,
    )


def _call_bucket(plan: DdpPlan, cursor: Cursor) -> Call:
    if plan.on_cpu:
        operator_ns = cursor.host_ns + BUCKET_LEAD_NS
        cursor.hold(BUCKET_LEAD_NS + HOST_OVERHEAD_NS)
        end_ns = cursor.host_ns
        return Call(operator_ns=operator_ns, recorded_ns=operator_ns, launched_ns=end_ns, earliest_ns=end_ns)
    cursor.host_ns += BUCKET_LEAD_NS
    call = cursor.call(cursor.device_ns)
    cursor.host_ns += BUCKET_HOST_NS - BUCKET_LEAD_NS + HOST_OVERHEAD_NS
    return call


def _transfer(plan: DdpPlan, number: int, own: dict[int, _Own]) -> _Transfers:
    """Bucket after bucket: it starts on a rank when ready and its lane is free, and ends on all together."""
    free: dict[tuple[int, str], int] = {}
    started, finished = [], []
    for index, transfer_ns in enumerate(plan.transfers_of(number)):
        lane = plan.lane(index)
        start = {
            rank: max(times.ready_ns[index], times.calls[index].earliest_ns, free.get((rank, lane), 0))
            for rank, times in own.items()
        }
        end_ns = max(start.values()) + transfer_ns
        finish = {rank: end_ns + plan.end_jitter_ns.get(rank, 0) for rank in own}
        free.update({(rank, lane): ns for rank, ns in finish.items()})
        started.append(start)
        finished.append(finish)
    return _Transfers(started_ns=tuple(started), finished_ns=tuple(finished))


def _measure(plan: DdpPlan, rank: int, own: _Own, transfers: _Transfers) -> ExpectedMeasures:
    """Union measures of a step.

    Starts never fall back, so what a bucket adds to the union is its part after all ends before it. Compute
    has no gap up to the end of backward, and from there on communication has none up to its last end.
    """
    communication_ns, total_ns, covered_ns = 0, 0, 0
    for started, finished in zip(transfers.started_ns, transfers.finished_ns, strict=True):
        communication_ns += max(0, finished[rank] - max(started[rank], covered_ns))
        covered_ns = max(covered_ns, finished[rank])
        total_ns += finished[rank] - started[rank]
    exposed_ns = max(0, covered_ns - own.backward_end_ns)
    memory_ns = plan.copy_ns + plan.slower_by_ns(rank, "memory")
    return ExpectedMeasures(
        compute_ns=own.backward_end_ns - own.first_ns - memory_ns + plan.optimizer_ns,
        communication_ns=communication_ns,
        overlap_ns=communication_ns - exposed_ns,
        exposed_communication_ns=exposed_ns,
        communication_self_overlap_ns=total_ns - communication_ns if plan.workers < 3 else None,
        memory_ns=memory_ns,
        exposed_memory_ns=memory_ns,
    )


def _buckets(
    plan: DdpPlan, number: int, own: dict[int, _Own], transfers: _Transfers
) -> tuple[ExpectedBucket, ...]:
    return tuple(
        ExpectedBucket(
            step=number,
            rank=rank,
            index=index,
            size_bytes=sum(bucket) * ELEMENT_BYTES,
            ready_ns=times.ready_ns[index],
            operator_ns=times.calls[index].operator_ns,
            recorded_ns=None if plan.on_cpu else times.calls[index].recorded_ns,
            launched_ns=None if plan.on_cpu else times.calls[index].launched_ns,
            started_ns=(start := transfers.started_ns[index][rank]),
            finished_ns=(finish := transfers.finished_ns[index][rank]),
            transfer_ns=plan.transfers_of(number)[index],
            exposed_ns=max(0, finish - max(start, times.backward_end_ns)),
        )
        for index, bucket in enumerate(plan.buckets_of(number))
        for rank, times in own.items()
    )


def _collectives(plan: DdpPlan, number: int, transfers: _Transfers) -> tuple[ExpectedCollective, ...]:
    return tuple(
        ExpectedCollective(
            step=number,
            group=DEFAULT_GROUP,
            op="all_reduce",
            size_bytes=sum(bucket) * ELEMENT_BYTES,
            transfer_ns=plan.transfers_of(number)[index],
            arrivals_ns=transfers.started_ns[index],
        )
        for index, bucket in enumerate(plan.buckets_of(number))
    )
