"""The parts that a recording's time falls into, with the same names and colours in every format.

The colours stay apart for the common kinds of colour blindness (after Okabe and Ito) and in grey.
"""

from __future__ import annotations

from dataclasses import dataclass

from rankscope.model.report import Measures


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of the window.

    Attributes:
        slug: name in style sheets and scripts.
        label: name for people.
        light, dark: colour on a light and on a dark page.
        block: character that draws it in a terminal without colour.
    """

    slug: str
    label: str
    light: str
    dark: str
    block: str


COMPUTE = Part(slug="compute", label="compute", light="#2f6fb0", dark="#4f94d4", block="█")
HIDDEN = Part(slug="hidden", label="hidden communication", light="#f2bd7c", dark="#e0b070", block="▓")
EXPOSED = Part(slug="exposed", label="exposed communication", light="#d1491b", dark="#ee6a3c", block="#")
MEMORY = Part(slug="memory", label="exposed memory", light="#7f9c8a", dark="#8fae9b", block="▒")
IDLE = Part(slug="idle", label="idle", light="#dfe3e8", dark="#3b424c", block="░")
ANNOTATION = Part(slug="annotation", label="annotation", light="#b7bfd4", dark="#59627a", block=" ")
WAITING = Part(slug="waiting", label="waiting for a peer", light="#c9b3cf", dark="#7c6585", block=" ")

PARTS = (COMPUTE, HIDDEN, EXPOSED, MEMORY, IDLE)
"""In the order in which a bar is stacked."""


def split_window(measures: Measures) -> tuple[tuple[Part, int], ...]:
    """The parts of a window with their nanoseconds; their sum is the window.

    Compute under which communication runs is shown as hidden communication, the rest of it as compute.

    >>> parts = split_window(Measures(window_ns=10, compute_ns=6, communication_ns=4, overlap_ns=3,
    ...     exposed_communication_ns=1, memory_ns=2, exposed_memory_ns=2, idle_ns=1, overlap_ratio=0.75))
    >>> [ns for _, ns in parts]
    [3, 3, 1, 2, 1]
    """
    return (
        (COMPUTE, measures.compute_ns - measures.overlap_ns),
        (HIDDEN, measures.overlap_ns),
        (EXPOSED, measures.exposed_communication_ns),
        (MEMORY, measures.exposed_memory_ns),
        (IDLE, measures.idle_ns or 0),
    )
