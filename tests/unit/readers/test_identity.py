"""Whose file it is: rank, world size and window, and when files cannot be one run."""

from __future__ import annotations

from typing import Any

import pytest

from rankscope.errors import InputError
from rankscope.model.run import Problem, TraceWindow
from rankscope.readers.identity import identify
from support.reading import read_text
from support.trace_text import Row, job, kernel, step, trace_text

US_PER_MINUTE = 60_000_000
WORK = [kernel("a", 0, 1)]


def identified(
    *files: tuple[str, list[Row], dict[str, Any]],
) -> tuple[tuple[TraceWindow, ...], tuple[Problem, ...]]:
    """Windows of files given as (name, events, metadata)."""
    return identify([read_text(trace_text(events, metadata), name=name) for name, events, metadata in files])


def ranks_of(*files: tuple[str, list[Row], dict[str, Any]]) -> list[tuple[str, int, str]]:
    return [(w.file, w.rank, w.rank_source) for w in identified(*files)[0]]


def test_no_files() -> None:
    assert identify([]) == ((), ())


def test_the_file_itself_is_believed_before_its_name() -> None:
    assert ranks_of(("rank9.json", WORK, job(3, 4))) == [("rank9.json", 3, "distributedInfo")]


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("rank7.json", 7), ("rank_00012.json", 12), ("Rank-3.pt.trace.json.gz", 3), ("run.rank.5.json", 5),
        ("host1_rank2.json", 2), ("worker4.123.pt.trace.json", 4), ("a_worker_6.json", 6),
    ],
)  # fmt: skip
def test_rank_from_the_name_with_a_note(name: str, rank: int) -> None:
    windows, problems = identified((name, WORK, {}))
    assert (windows[0].rank, windows[0].rank_source) == (rank, "file name")
    assert [(p.kind, p.severity) for p in problems] == [("rank-from-name", "note")]


@pytest.mark.parametrize(
    "name",
    ["crank7.json", "frankfurt2.json", "trace_0.json", "7.json", f"rank{1 << 20}.json", "rank" + "9" * 99],
)
def test_numbers_in_a_name_that_are_no_rank(name: str) -> None:
    windows, problems = identified((name, WORK, {}))
    assert (windows[0].rank, windows[0].rank_source) == (0, "numbered")
    assert [(p.kind, p.severity) for p in problems] == [("rank-numbered", "warning")]


def test_files_without_rank_get_the_free_numbers_in_order_of_name() -> None:
    files = [
        ("a.json", WORK, {}),
        ("b.json", WORK, job(1, 4)),
        ("c.json", WORK, {}),
        ("rank0.json", WORK, {}),
    ]
    assert ranks_of(*files) == [
        ("rank0.json", 0, "file name"),
        ("b.json", 1, "distributedInfo"),
        ("a.json", 2, "numbered"),
        ("c.json", 3, "numbered"),
    ]


@pytest.mark.parametrize("rank", [-1, True, None, "3", 1.0, [0], 10**30], ids=repr)
def test_a_rank_that_is_none_is_not_believed(rank: Any) -> None:
    assert ranks_of(("rank5.json", WORK, {"distributedInfo": {"rank": rank}})) == [
        ("rank5.json", 5, "file name")
    ]


@pytest.mark.parametrize("info", [None, [], "text", 5, {}], ids=repr)
def test_distributed_info_of_any_type(info: Any) -> None:
    windows, _ = identified(("rank5.json", WORK, {"distributedInfo": info}))
    assert windows[0].world_size is None
    assert windows[0].backend is None


def test_a_rank_that_the_job_does_not_have_is_said() -> None:
    windows, problems = identified(("a.json", WORK, job(7, 2)))
    assert windows[0].rank == 7
    (problem,) = problems
    assert (problem.file, problem.kind) == ("a.json", "rank-outside")
    assert "rank 7 cannot be in a job of world size 2" in problem.message


@pytest.mark.parametrize("size", [0, -2, 10**12])
def test_a_world_size_that_cannot_be_is_left_out_and_said(size: int) -> None:
    """A list of 10^12 missing ranks would be the end of the machine."""
    windows, problems = identified(("a.json", WORK, job(0, size)))
    assert windows[0].world_size is None
    assert [p.kind for p in problems] == ["world-size"]


@pytest.mark.parametrize("size", [True, "2", 2.0, None, [2]], ids=repr)
def test_a_world_size_of_a_wrong_type_is_unknown(size: Any) -> None:
    windows, _ = identified(("a.json", WORK, {"distributedInfo": {"rank": 0, "world_size": size}}))
    assert windows[0].world_size is None


@pytest.mark.parametrize(("backend", "kept"), [("nccl", "nccl"), ("undefined", None), ("", None), (5, None)])
def test_backend(backend: Any, kept: str | None) -> None:
    info = {"rank": 0, "world_size": 1, "backend": backend}
    assert identified(("a.json", WORK, {"distributedInfo": info}))[0][0].backend == kept


def test_groups_in_the_order_of_the_file() -> None:
    config = [
        {
            "pg_name": "0",
            "pg_desc": "default_pg",
            "backend_config": "cuda:nccl",
            "pg_size": 4,
            "ranks": [0, 1, 2, 3],
        },
        {"pg_name": "1", "pg_desc": "tp", "ranks": [0, 1]},
        "stray",
        {"pg_name": "2", "ranks": 5},
        {"pg_name": "3", "ranks": [True, "x", 3]},
        {},
    ]
    (window,) = identified(("a.json", WORK, job(0, 4, pg_config=config)))[0]
    assert [(g.name, g.description, g.ranks, g.backend) for g in window.groups] == [
        ("0", "default_pg", (0, 1, 2, 3), "cuda:nccl"),
        ("1", "tp", (0, 1), ""),
        ("2", "", (), ""),
        ("3", "", (3,), ""),
        ("", "", (), ""),
    ]


@pytest.mark.parametrize("config", [None, 5, "text", {}, {"pg_name": "0"}], ids=repr)
def test_groups_of_a_wrong_type_are_none(config: Any) -> None:
    assert identified(("a.json", WORK, job(0, 4, pg_config=config)))[0][0].groups == ()


def test_facts_beside_the_events() -> None:
    metadata = {
        **job(0, 1, nccl_version="2.21.5"),
        "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}, {"id": "x"}, 5],
        "host_name": "node7",
        "cuda_runtime_version": 12040,
        "cuda_driver_version": "text",
    }
    (window,) = identified(("a.json", WORK, metadata))[0]
    assert window.device_names == {0: "NVIDIA H100"}
    assert window.host == "node7"
    assert window.versions == {"cuda runtime": "12040", "nccl": "2.21.5"}


def test_two_world_sizes_in_one_directory_are_refused_with_both_files() -> None:
    with pytest.raises(InputError) as caught:
        identified(("a.json", WORK, job(0, 2)), ("b.json", WORK, job(1, 2)), ("c.json", WORK, job(2, 4)))
    assert "a.json says 2" in str(caught.value)
    assert "c.json says 4" in str(caught.value)


def test_windows_of_a_rank_are_numbered_by_time() -> None:
    files = [
        ("x.json", [step(5, 900, 10), kernel("a", 905, 20)], job(0, 1)),
        ("y.json", [step(1, 100, 10), kernel("a", 105, 20)], job(0, 1)),
    ]
    windows, problems = identified(*files)
    assert [(w.window, w.file) for w in windows] == [(0, "y.json"), (1, "x.json")]
    assert problems == ()


def test_a_kernel_that_leaks_into_the_next_window_does_not_make_two_runs() -> None:
    files = [
        ("x.json", [step(1, 100, 10), kernel("a", 105, 200)], job(0, 1)),
        ("y.json", [step(2, 200, 10), kernel("a", 205, 10)], job(0, 1)),
    ]
    assert [w.window for w in identified(*files)[0]] == [0, 1]


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ([step(1, 100, 10), kernel("a", 105, 1)], "they cover the same time"),  # a copy
        ([kernel("a", 105, 1)], "they cover the same time"),
        ([step(3, 105, 10)], "they cover the same time"),
        ([step(1, 900, 10)], "both hold ProfilerStep#1"),  # the same steps, later: another run
    ],
)
def test_two_files_of_a_rank_that_cannot_be_one_run(other: list[Row], reason: str) -> None:
    with pytest.raises(InputError) as caught:
        identified(
            ("x.json", [step(1, 100, 10), kernel("a", 105, 1)], job(0, 1)), ("y.json", other, job(0, 1))
        )
    for text in ("rank 0", "x.json", "y.json", reason):
        assert text in str(caught.value)


def test_two_runs_are_told_with_windows_between_them_too() -> None:
    files = [(f"{n}.json", [step(number, 100 * n, 10)], job(0, 1)) for n, number in enumerate((1, 2, 1))]
    with pytest.raises(InputError, match=r"0\.json and 2\.json \(both hold ProfilerStep#1\)"):
        identified(*files)


def test_an_empty_window_is_no_other_run() -> None:
    windows, _ = identified(("a.json", [], job(0, 1)), ("b.json", WORK, job(0, 1)), ("c.json", [], job(0, 1)))
    assert sorted(w.file for w in windows) == ["a.json", "b.json", "c.json"]


def test_ranks_that_began_long_apart_are_doubted() -> None:
    """More than ten minutes from the middle one."""
    starts = {0: 0, 1: 1, 2: 11 * US_PER_MINUTE}
    files = [(f"{r}.json", [kernel("a", us, 1)], job(r, 3)) for r, us in starts.items()]
    _, problems = identified(*files)
    (problem,) = problems
    assert (problem.file, problem.kind) == ("2.json", "time-apart")
    nearer = [(f"{r}.json", [kernel("a", us * 9 // 11, 1)], job(r, 3)) for r, us in starts.items()]
    assert identified(*nearer)[1] == ()


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("node-7_1234.1724066820235157909.pt.trace.json.gz", "node-7"),
        ("9c44bd29b3f0_1375.1698954910154.pt.trace.json", "9c44bd29b3f0"),
        ("worker1_step_12.1694128201556.pt.trace.json.gz", None),  # named by the user
        ("rank0.json", None),
    ],
)
def test_the_host_in_names_that_torch_gives(name: str, host: str | None) -> None:
    windows, _ = identified((name, WORK, job(0, 1)))
    assert windows[0].host == host
