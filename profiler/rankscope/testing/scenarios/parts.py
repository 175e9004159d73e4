"""What runs of several kinds are made of: numbered groups, repeated steps, collectives that compute waits for."""

from __future__ import annotations

from collections.abc import Iterable

from rankscope.errors import UsageError
from rankscope.testing.program import COMPUTE, Collective, Group, Item, Program, StreamWait, step

DEFAULT_GROUP = "0"
DATA_LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def number_groups(*described: tuple[tuple[int, ...], str]) -> tuple[Group, ...]:
    """Groups from their ranks and descriptions, named as torch names them: by their place.

    >>> [group.name for group in number_groups(((0, 1), "default_pg"), ((0,), "MINE"))]
    ['0', '1']
    """
    return tuple(
        Group(name=str(number), ranks=ranks, description=text)
        for number, (ranks, text) in enumerate(described)
    )


def everyone(ranks: int) -> tuple[Group, ...]:
    """The default group alone."""
    return number_groups((tuple(range(ranks)), "default_pg"))


def repeat_steps(count: int, items: Iterable[Item]) -> Program:
    """The same items in steps 0 to `count` - 1."""
    held = tuple(items)
    return tuple(step(number, *held) for number in range(count))


def blocking_all_reduce(
    group: str, stream: str, elements: int, transfer_ns: int, dtype: str = "bfloat16"
) -> list[Item]:
    """An all-reduce that the compute launched after it waits for."""
    return [
        Collective(
            group=group,
            op="all_reduce",
            elements=elements,
            transfer_ns=transfer_ns,
            dtype=dtype,
            stream=stream,
        ),
        StreamWait(stream=COMPUTE, on=stream),
    ]


def refuse(name: str, *faults: tuple[bool, str], **durations_ns: int) -> None:
    """Refuse parameters without meaning.

    Args:
        name: the scenario.
        faults: whether a fault is there, and its text.
        durations_ns: durations by name; below zero they are a fault.

    Raises:
        UsageError: naming every fault.
    """
    found = [text for is_fault, text in faults if is_fault]
    found += [f"{key} must not be negative: {ns}" for key, ns in durations_ns.items() if ns < 0]
    if found:
        raise UsageError(f"{name}: " + "; ".join(found))
