from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest

from rankscope.errors import FormatVersionError, InputError
from rankscope.gate.baseline import join_baselines, read_baseline, render_baseline, shrink_baseline
from rankscope.gate.compare import compare
from rankscope.gate.snapshot import list_parts, take_snapshot
from rankscope.model.snapshot import Baseline, Part, Parts, Snapshot
from support.gate_reports import make_side, make_snapshot, two_rank_report


def test_there_and_back() -> None:
    report = two_rank_report()
    before = Baseline(tool_version="0.1.0", runs=[take_snapshot(report)], parts=list_parts(report))
    after = read_baseline(render_baseline(before))
    assert after == before
    comparison = compare(before, read_baseline(render_baseline(shrink_baseline(before))))
    assert comparison.changed("worse") == ()
    assert comparison.parts == ()


def largest(seed: int, kernels: int) -> Baseline:
    """Eight ranks, 500 steps, four runs, long names: more than anything real."""
    rng = random.Random(seed)
    report = two_rank_report()
    runs = []
    for number in range(6):
        snapshot = take_snapshot(report)
        figures: dict[str, float | None] = {name: rng.random() * 1e9 for name in snapshot.figures}
        samples: dict[str, list[float | None]] = {
            name: [rng.random() * 1e9 for _ in range(500)] for name in snapshot.samples
        }
        runs.append(
            replace(snapshot, name=f"{number}" + "n" * 300, ranks=8, rows=8, figures=figures, samples=samples)
        )
    rows = [Part(part_class="collective", name="all_reduce", group=f"{i}" * 200, count=rng.random(),
                 time_ns=rng.random() * 1e9, exposed_ns=rng.random() * 1e9) for i in range(90)]  # fmt: skip
    rows += [Part(part_class="compute", name=f"{i}" + "k" * 900, count=rng.random(), time_ns=rng.random() * 1e9)
             for i in range(kernels)]  # fmt: skip
    rows.sort(key=lambda part: -part.time_ns)
    return Baseline(tool_version="0.1.0", runs=runs, parts=Parts(rows=rows, has_kernels=True))


def test_a_baseline_is_under_20_kilobytes() -> None:
    text = render_baseline(shrink_baseline(largest(1, 5000)))
    assert len(text.encode()) < 20_000
    back = read_baseline(text)
    assert [run.name[0] for run in back.runs] == ["2", "3", "4", "5"]  # the newest four
    assert back.parts.left_out_kernel_ns > 0


def test_what_was_cut_off_does_not_appear_and_long_names_stay_apart() -> None:
    whole = largest(2, 100)
    assert compare(shrink_baseline(whole), whole).parts == ()
    name = whole.parts.rows[0].name
    longer = [replace(p, time_ns=2 * p.time_ns) if p.name == name else p for p in whole.parts.rows]
    (part,) = compare(shrink_baseline(whole), replace(whole, parts=replace(whole.parts, rows=longer))).parts
    assert (part.name, part.change) == (name, "longer")


def test_it_is_strict_json_and_a_line_per_run() -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    text = render_baseline(make_side(make_snapshot([0.5, None]), make_snapshot([0.25, 0.5])))
    tree = json.loads(text, parse_constant=refuse)
    assert tree["format"] == {"name": "rankscope-baseline", "version": "1.0"}
    assert sum('"samples"' in line for line in text.splitlines()) == 2


def test_hostile_names_survive() -> None:
    name = '"}\n::error::\ud800\u202e'
    text = render_baseline(make_side(make_snapshot([0.5], name=name)))
    assert read_baseline(text).runs[0].name == '"}\n::error::\\ud800\u202e'


def test_unknown_keys_are_ignored_and_other_minor_versions_read() -> None:
    tree = json.loads(render_baseline(make_side(make_snapshot([0.5]))))
    tree["format"]["version"] = "1.7"
    tree["news"] = tree["runs"][0]["news"] = 3
    assert read_baseline(json.dumps(tree)).runs[0].name == "run"


def test_another_major_version_is_refused_with_both_numbers() -> None:
    text = render_baseline(make_side(make_snapshot([0.5]))).replace('"version":"1.0"', '"version":"2.3"')
    with pytest.raises(FormatVersionError, match=r"2\.3.*1\.0"):
        read_baseline(text)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"format": {"name": "rankscope-report"}}', '{"format": {"name": "rankscope-baseline"}}',
     '{"format": {"name": "rankscope-baseline", "version": "1.0"}, "tool_version": "1", "runs": []}',
     '{"format": {"name": "rankscope-baseline", "version": "1.0"}, "tool_version": "1", "runs": [{"name": 3}]}'],
)  # fmt: skip
def test_what_is_no_baseline(text: str) -> None:
    with pytest.raises(InputError, match="not a rankscope baseline"):
        read_baseline(text)


def test_joining_keeps_the_newest_parts() -> None:
    old = make_side(make_snapshot([0.5], name="old"))
    new = make_side(
        make_snapshot([0.5], name="new"), parts=[Part(part_class="compute", name="k", count=1, time_ns=1)]
    )
    joined = join_baselines([old, new])
    assert [run.name for run in joined.runs] == ["old", "new"]
    assert joined.parts == new.parts


def test_a_snapshot_of_nothing() -> None:
    empty = Snapshot(name="empty")
    assert compare(make_side(empty), make_side(empty)).changed("worse") == ()
