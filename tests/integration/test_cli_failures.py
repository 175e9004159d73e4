"""The real command when something is wrong: a message, an exit status, and nothing half-written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.command import COMMAND, ENVIRONMENT, rankscope, strict_json, write_run
from support.trace_text import annotation, job, kernel, to_json, trace_text


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("cli") / "run")


@pytest.fixture
def broken_run(tmp_path: Path) -> Path:
    """Rank 1 was cut while it was written."""
    folder = write_run(tmp_path / "run")
    stored = (folder / "rank1.json").read_bytes()
    (folder / "rank1.json").write_bytes(stored[:500])
    return folder


def test_a_lost_file_is_status_2_with_the_report_on_the_others(broken_run: Path) -> None:
    done = rankscope("analyze", broken_run, "--format", "json")
    assert done.returncode == 2
    report = strict_json(done.stdout)
    assert [row["rank"] for row in report["ranks"]] == [0]
    assert report["run"]["missing_ranks"] == [1]
    (problem,) = [p for p in report["problems"] if p["severity"] == "error"]
    assert (problem["file"], problem["kind"]) == ("rank1.json", "truncated")
    assert 480 <= problem["offset"] <= 500
    shown = rankscope("analyze", broken_run)
    assert shown.returncode == 2
    assert "rank1.json" in shown.stdout


def test_files_are_written_for_a_run_with_a_lost_file_too(broken_run: Path, tmp_path: Path) -> None:
    assert rankscope("analyze", broken_run, "-o", tmp_path / "r.json").returncode == 2
    assert strict_json((tmp_path / "r.json").read_text())["run"]["missing_ranks"] == [1]


@pytest.mark.parametrize(
    "text", ['{"traceEvents":[]}', trace_text([annotation("mine", 0, 5)]), '{"traceEvents":[', ""]
)
def test_nothing_that_can_be_analysed_is_status_2_with_a_report(tmp_path: Path, text: str) -> None:
    (tmp_path / "rank0.json").write_text(text)
    done = rankscope("analyze", tmp_path, "--format", "json")
    assert done.returncode == 2
    assert strict_json(done.stdout)["ranks"] == []
    assert "nothing could be analysed" in done.stderr


def test_warnings_alone_are_no_failure(tmp_path: Path) -> None:
    text = trace_text([kernel("a", 0, 5), kernel("b", 9, -1)], job(0, 2))
    (tmp_path / "rank0.json").write_text(text)
    assert rankscope("analyze", tmp_path).returncode == 0


def test_nothing_to_read(tmp_path: Path) -> None:
    for run, said in (
        (tmp_path / "absent", "absent does not exist"),
        (tmp_path, "no trace file in"),
        ("nothing://x", "cannot look into nothing://x"),
    ):
        done = rankscope("analyze", run)
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr
        assert "docs/errors.md#input" in done.stderr


def test_two_runs_in_one_directory(tmp_path: Path) -> None:
    for name, size in (("a.json", 2), ("b.json", 4)):
        (tmp_path / name).write_text(trace_text([kernel("a", 0, 5)], job(0, size)))
    done = rankscope("analyze", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "a.json says 2, b.json says 4" in done.stderr


def test_the_directory_of_the_output_is_missing(run: Path, tmp_path: Path) -> None:
    """Said before the traces are read, for all outputs at once."""
    words: list[str | Path] = ["-o", tmp_path / "no" / "r.json", "-o", tmp_path / "nor" / "r.md"]
    done = rankscope("analyze", run, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert "no does not exist" in done.stderr
    assert "nor does not exist" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(
    not Path("/proc/self").is_dir(), reason="needs a directory in which nobody can create a file"
)
def test_a_directory_that_takes_no_file(run: Path) -> None:
    """/proc is a directory even for root in which nothing can be created."""
    done = rankscope("analyze", run, "-o", "/proc/report.json")
    assert done.returncode == 2
    assert "cannot write /proc/report.json" in done.stderr


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "tiny"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except OSError:
        mounted = False
    if not mounted:
        pytest.skip("mounting a tiny disk needs root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk(run: Path, tiny_disk: Path) -> None:
    """The HTML report is larger than the disk: the old file stays, and no part of the new one."""
    (tiny_disk / "r.html").write_text("old")
    done = rankscope("analyze", run, "-o", tiny_disk / "r.html", "--force")
    assert done.returncode == 2
    assert "r.html: No space left on device" in done.stderr
    assert {p.name: p.read_text() for p in tiny_disk.iterdir()} == {"r.html": "old"}


def test_tables_on_a_full_disk(run: Path, tiny_disk: Path) -> None:
    (tiny_disk / "filler").write_bytes(b"x" * 12_000)
    done = rankscope("analyze", run, "--tables", tiny_disk / "t")
    assert done.returncode == 2
    assert "No space left on device" in done.stderr
    assert [path for path in (tiny_disk / "t").iterdir() if path.suffix != ".parquet"] == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_stdout_on_a_full_disk(run: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, "analyze", str(run)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env=ENVIRONMENT,
        )
    assert done.returncode == 2
    assert done.stderr.startswith("rankscope: error: [Errno 28] No space left on device")
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize("format_", ["console", "html"])
@pytest.mark.parametrize("reader", ["head -1", "true"])
def test_a_reader_that_goes_away(run: Path, format_: str, reader: str) -> None:
    """A short report meets the closed pipe at the end, a long one in the middle: no word and status 0."""
    command = " ".join([*COMMAND, "analyze", str(run), "--format", format_])
    script = f"set -o pipefail; {command} | {reader}"
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=False, env=ENVIRONMENT
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("closed", [">&-", "2>&-"])
def test_closed_streams(run: Path, closed: str) -> None:
    command = " ".join([*COMMAND, "analyze", str(run), closed])
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=False, env=ENVIRONMENT
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture(scope="module")
def big_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files of 40 MB: half a second of reading each."""
    folder = tmp_path_factory.mktemp("big")
    events = ",".join(to_json(kernel(f"k{i % 50}", 3 * i, 2)) for i in range(40_000))
    for rank in range(2):
        info = f'"distributedInfo":{{"rank":{rank},"world_size":2}}'
        (folder / f"rank{rank}.json").write_text(
            '{"traceEvents":[' + ",".join([events] * 10) + "]," + info + "}"
        )
    return folder


def start_reading(run: Path, processes: int, target: Path) -> subprocess.Popen[str]:
    """The command, in the midst of reading, with its temporary files where it is to leave nothing."""
    process = subprocess.Popen(
        [*COMMAND, "analyze", str(run), "--processes", str(processes), "-o", str(target)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**ENVIRONMENT, "TMPDIR": str(target.parent)},
    )
    wait_until_it_reads(process.pid, run, processes)
    return process


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("to_all", [False, True], ids=["to the parent", "to the whole group"])
@pytest.mark.parametrize(
    ("which", "status", "word"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
def test_stopped_while_reading(
    big_run: Path, tmp_path: Path, processes: int, to_all: bool, which: signal.Signals, status: int, word: str
) -> None:
    """Ctrl-C on a terminal goes to all processes, `kill -INT` to one; a batch system terminates either way."""
    process = start_reading(big_run, processes, tmp_path / "r.json")
    (os.killpg if to_all else os.kill)(process.pid, which)
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == status
    assert stdout == ""
    assert stderr == f"rankscope: {word}; nothing was left half-written\n"
    assert list(tmp_path.iterdir()) == []


def test_workers_end_when_their_parent_is_killed(big_run: Path, tmp_path: Path) -> None:
    """Nothing can be said then; but nothing is left behind either."""
    import psutil

    process = start_reading(big_run, 2, tmp_path / "r.json")
    workers = psutil.Process(process.pid).children(recursive=True)
    assert len(workers) >= 2
    process.kill()
    process.communicate(timeout=30)
    _gone, alive = psutil.wait_procs(workers, timeout=20)
    assert alive == []
    assert list(tmp_path.iterdir()) == []


def test_a_worker_that_is_killed_costs_its_file_and_no_more_than_that(big_run: Path, tmp_path: Path) -> None:
    """What it read is read again in a process of its own, and the report holds both."""
    import psutil

    target = tmp_path / "r.json"
    process = start_reading(big_run, 2, target)
    readers = [
        child
        for child in psutil.Process(process.pid).children(recursive=True)
        if any(str(big_run) in file.path for file in child.open_files())
    ]
    readers[0].kill()
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 0, stderr
    assert strict_json(target.read_text())["run"]["ranks"] == [0, 1]


def wait_until_it_reads(pid: int, folder: Path, processes: int) -> None:
    """Until as many processes as wanted hold a trace open."""
    import psutil

    parent = psutil.Process(pid)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        family = [parent, *parent.children(recursive=True)]
        if sum(any(str(folder) in f.path for f in member.open_files()) for member in family) >= processes:
            return
        time.sleep(0.01)
    raise AssertionError("it never began to read")


def test_debug_shows_the_traceback_of_a_fault_of_ours(run: Path) -> None:
    script = (
        "import rankscope.cli.main as m, rankscope.pipeline as p\n"
        "def fail(*a): raise ZeroDivisionError('oops')\n"
        "p.analyze_fully = fail\n"
        f"import sys; sys.argv = ['rankscope', 'analyze', {str(run)!r}]\n"
        "m.main()"
    )
    for debug in ("", "1"):
        environment = {**ENVIRONMENT, "RANKSCOPE_DEBUG": debug}
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=False, env=environment
        )
        assert done.returncode == 2
        assert "internal error: ZeroDivisionError: oops" in done.stderr
        assert ("Traceback" in done.stderr) == bool(debug)
