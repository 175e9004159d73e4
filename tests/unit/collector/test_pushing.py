"""The push after the last window: whom it waits for, what it sends, in which order."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from rankscope import upload
from rankscope.collector import Push, RankscopeWarning
from rankscope.collector.identity import Identity
from rankscope.collector.membership import Membership
from rankscope.collector.options import RankSelection
from rankscope.collector.pushing import _traces, _wait_for, join_actions
from rankscope.upload import Destination, PushedRun

EVERYONE = RankSelection()


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).write_bytes(b"{}")


def test_traces_are_told_by_their_names(tmp_path: Path) -> None:
    write(
        tmp_path,
        "rank_00007.2.pt.trace.json.gz",
        "rank_00000.0.copy1.pt.trace.json.gz",
        ".rank_00001.0.partial",
        "notes.json",
        "rank_00001.0.pt.trace.json",
    )
    assert sorted(_traces(tmp_path).values()) == [(0, 0), (7, 2)]


def test_it_waits_for_the_last_window_of_every_rank(tmp_path: Path) -> None:
    write(tmp_path, *(f"rank_0000{rank}.{window}.pt.trace.json.gz" for rank in (0, 1) for window in (0, 1)))
    assert _wait_for(tmp_path, {0, 1}, 0.0) == set()
    write(tmp_path, "rank_00000.2.pt.trace.json.gz")
    assert _wait_for(tmp_path, {0, 1}, 0.0) == {1}
    later = threading.Timer(0.3, write, (tmp_path, "rank_00001.2.pt.trace.json.gz"))
    later.start()
    assert _wait_for(tmp_path, {0, 1}, 60.0) == set()
    later.join()


def test_nothing_to_do_is_nothing_done() -> None:
    assert join_actions(None, None, EVERYONE, Membership()) is None

    def act(_directory: Path) -> None:
        """Do nothing."""

    assert join_actions(act, None, EVERYONE, Membership()) is act


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What would have gone to a dashboard; the real transfer is in tests/dashboard/test_push.py."""
    pytest.importorskip("torch")  # who this rank is, is asked of torch
    calls: list[object] = []

    def take(files: list[Path], to: Destination, **fields: object) -> PushedRun:
        calls.append(([path.name for path in files], to.url, to.token, fields))
        return PushedRun(run_id="1", link="")

    monkeypatch.setattr(upload, "push_run", take)
    return calls


def test_the_users_action_comes_first_then_the_push(tmp_path: Path, sent: list[object]) -> None:
    write(tmp_path, "rank_00000.0.pt.trace.json.gz", "notes.json")
    action = join_actions(lambda _directory: sent.append("mine"), "http://there", EVERYONE, Membership())
    assert action is not None
    action(tmp_path)
    fields = {"name": tmp_path.name, "tags": {}, "keep_traces": True}
    assert sent == ["mine", (["rank_00000.0.pt.trace.json.gz"], "http://there", None, fields)]


def test_the_token_comes_from_the_environment_unless_given(
    tmp_path: Path, sent: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "rank_00000.0.pt.trace.json.gz")
    monkeypatch.setenv("RANKSCOPE_TOKEN", "from outside")
    Push(to="x").send(tmp_path, [0])
    Push(to="x", token="given").send(tmp_path, [0])  # noqa: S106
    assert [call[2] for call in sent if isinstance(call, tuple)] == ["from outside", "given"]


def test_ranks_that_never_write_are_named(tmp_path: Path, sent: list[object]) -> None:
    write(tmp_path, "rank_00000.0.pt.trace.json.gz", "rank_00002.0.pt.trace.json.gz")
    push = Push(to="x", wait_seconds=0.0)
    with pytest.warns(RankscopeWarning, match=r"without ranks 1, 3"):
        push.send(tmp_path, range(4))
    push.send(tmp_path, [0, 2])  # those that record are all there: no warning
    assert len(sent) == 2


def test_the_ranks_that_record_are_known_after_the_process_group_is_gone(
    tmp_path: Path, sent: list[object]
) -> None:
    write(tmp_path, "rank_00000.0.pt.trace.json.gz")
    membership = Membership()
    membership.identity = Identity(rank=0, world_size=6, backend="gloo", certain=True)
    push = Push(to="x", wait_seconds=0.0)
    action = join_actions(None, push, RankSelection(every=2), membership)
    assert action is not None
    with pytest.warns(RankscopeWarning, match=r"without ranks 2, 4: no trace"):
        action(tmp_path)
    assert len(sent) == 1
