"""The views and their words: what each picture shows and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewWords:
    """A view of the dashboard.

    Attributes:
        slug: name in links.
        title: name on the page.
        icon: a Material symbol.
        shows: one sentence: what the picture shows.
        act: one sentence: what to do with it.
    """

    slug: str
    title: str
    icon: str
    shows: str
    act: str


RUNS = ViewWords(
    slug="runs",
    title="Runs",
    icon=":material/list:",
    shows="All runs in the store, with the share of communication that compute hides and the time of a step.",
    act="Pick a run to see where its time goes; pick runs of one branch to see when overlap got worse.",
)
OVERVIEW = ViewWords(
    slug="overview",
    title="Overview",
    icon=":material/summarize:",
    shows="What the run comes down to, and where each rank and step spends its time.",
    act="Start with the first finding: it costs most, and its button leads to the picture behind it.",
)
OVERLAP = ViewWords(
    slug="overlap",
    title="Overlap",
    icon=":material/layers:",
    shows="How much of each step every rank spends on communication that no compute hides, and what that is.",
    act="A strong row is one rank, a strong column one step; the bars below name the operation to move or shrink.",
)
BUCKETS = ViewWords(
    slug="buckets",
    title="Buckets",
    icon=":material/inventory_2:",
    shows="When each DDP bucket is ready, starts and ends beside the backward pass, and how fast it moves.",
    act="Buckets that end after the backward cost time: try the bucket_cap_mb that the curve recommends.",
)
STRAGGLERS = ViewWords(
    slug="stragglers",
    title="Stragglers",
    icon=":material/hourglass_empty:",
    shows="Which rank the others wait for, what that costs per step, and what it does meanwhile.",
    act="Compare the named rank with its peers in the evidence, then look at the same moment on the timeline.",
)
TIMELINE = ViewWords(
    slug="timeline",
    title="Timeline",
    icon=":material/view_timeline:",
    shows="Every event of every rank on one clock; red lanes are times in which only communication runs.",
    act="Scroll to zoom, drag to move, click an event to read it; look for red beside a gap on another rank.",
)
COLLECTIVES = ViewWords(
    slug="collectives",
    title="Collectives",
    icon=":material/table_rows:",
    shows="Each collective over all its ranks: how long it waits, how long it transfers, and who comes last.",
    act="Sort by wait to find late ranks, by transfer to find slow links, and filter to one operation or group.",
)
COMPARE = ViewWords(
    slug="compare",
    title="Compare",
    icon=":material/compare_arrows:",
    shows="Two runs side by side: what got better, what got worse, and what changed beyond chance.",
    act="Choose the run from before the change; significant means more than steps differ among themselves.",
)
LEARN = ViewWords(
    slug="learn",
    title="Learn",
    icon=":material/school:",
    shows="What each collective does, and how long a ring would take for it with this run's sizes.",
    act="Compare the ring's time with the measured one: far above it means waiting or a slow link, not size.",
)
HTA = ViewWords(
    slug="hta",
    title="HTA",
    icon=":material/science:",
    shows="What HolisticTraceAnalysis says of the same events: idle time, critical path, kernels and queues.",
    act="Use it for questions on one rank; where its overlap differs from ours, the reason stands beside it.",
)

RUN_VIEWS = (OVERVIEW, OVERLAP, BUCKETS, STRAGGLERS, TIMELINE, COLLECTIVES, COMPARE, LEARN, HTA)
"""The views of one run, in the order of the menu."""

VIEW_OF_RULE = {"straggler": STRAGGLERS, "exposed-communication": OVERLAP, "unknown-operations": COLLECTIVES}
"""Rule of a finding -> the view that shows what it speaks of; a rule that is not here leads to the timeline."""
