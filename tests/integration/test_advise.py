"""`rankscope advise` as a user runs it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rankscope.pipeline import analyze
from rankscope.testing.synth import ddp_run, write_run
from support.command import rankscope, strict_json
from support.command import write_run as write_plain_run

MIB = 1 << 20
ONE_MIB = 262_144  # float32


def many_buckets(folder: Path) -> Path:
    """Two ranks, 16 gradients of 1 MiB, one every 1 ms: 14 buckets of one and a last one of two.

    A bucket takes 3 ms and 0.1 ms per MiB, so they queue: from 1 ms after the backward began to 1 + 14 x 3.1 + 3.2 =
    47.6 ms. Buckets of 4 would be ready after 4, 8, 12 and 16 ms and take 3.4 ms: the last one ends after 19.4 ms. One
    of 16 would end after 16 + 4.6 = 20.6 ms, two of 8 after 16 + 3.8 = 19.8 ms.
    """
    scenario = ddp_run(
        buckets=[*[[ONE_MIB]] * 14, [ONE_MIB, ONE_MIB]],
        backward_ns=[1_000_000] * 16 + [0],
        transfer_ns=[3_100_000] * 14 + [3_200_000],
        steps=4,
    )
    write_run(scenario, folder)
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of many buckets, which no test changes."""
    return many_buckets(tmp_path_factory.mktemp("many") / "run")


def test_a_larger_cap_is_recommended(run: Path) -> None:
    """4 MiB saves 47.6 - 19.4 = 28.2 ms per step."""
    done = rankscope("advise", run, "--caps", "1,4,8,16", "--format", "json")
    assert done.returncode == 0, done.stderr
    advice = strict_json(done.stdout)["advice"]
    assert advice["verdict"] == "change"
    assert advice["bucket_cap_mb"]["best"] == 4
    assert advice["code"] == "bucket_cap_mb=4"
    assert advice["saving_ns"] == pytest.approx(28_200_000, abs=200_000)
    assert advice["replay_error_ratio"] == pytest.approx(0, abs=0.01)
    assert advice["network"]["source"] == "run"
    assert advice["network"]["latency_ns"] == pytest.approx(3_000_000, rel=0.01)
    by_cap = {p["bucket_cap_mb"]: p for p in advice["bucket_cap_mb"]["predictions"]}
    assert {cap: p["buckets"] for cap, p in by_cap.items()} == {1: 16, 4: 4, 8: 2, 16: 1}
    assert by_cap[16]["step_ns"] - by_cap[4]["step_ns"] == pytest.approx(1_200_000, abs=200_000)
    assert by_cap[8]["step_ns"] - by_cap[4]["step_ns"] == pytest.approx(400_000, abs=100_000)
    assert all(p["step_low_ns"] <= p["step_ns"] <= p["step_high_ns"] for p in by_cap.values())


def test_console_says_what_to_write(run: Path) -> None:
    done = rankscope("advise", run)
    assert done.returncode == 0
    assert "DistributedDataParallel(model, bucket_cap_mb=" in done.stdout
    assert "Network from the run's own buckets, 2 sizes" in done.stdout
    assert done.stderr == ""


def test_every_format(run: Path, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a.txt", "a.md", "a.json", "a.html")]
    words = [word for file in files for word in ("-o", str(file))]
    done = rankscope("advise", run, *words)
    assert (done.returncode, done.stdout) == (0, "")
    console, markdown, plain, page = (file.read_text() for file in files)
    assert "Predictions" in console
    assert re.search(r"^\| bucket_cap_mb", markdown, re.MULTILINE)
    assert json.loads(plain)["advice"]["verdict"] == "change"
    assert "bucket_cap_mb" in page
    again = rankscope("advise", run, "-o", files[0])
    assert again.returncode == 2
    assert "exists already" in again.stderr


def test_caps_per_bucket_and_another_network(run: Path) -> None:
    done = rankscope(
        "advise", run, "--cap-list", "1,4", "--bandwidth", "100", "--latency", "10", "--format", "json"
    )
    advice = strict_json(done.stdout)["advice"]
    (per_bucket,) = [a for a in advice["alternatives"] if a["code"] == "bucket_cap_mb_list=[1, 4]"]
    assert per_bucket["buckets"] == 5
    fast = [p["step_ns"] for p in advice["bucket_cap_mb"]["predictions"]]
    assert max(fast) < advice["step_ns"]


def test_a_finding_in_the_report(run: Path) -> None:
    report = analyze(run)
    (finding,) = [f for f in report.findings if f.rule == "bucket-cap"]
    assert "bucket_cap_mb=" in finding.hint


def test_everything_hidden_gets_no_advice(tmp_path: Path) -> None:
    scenario = ddp_run(overlap="full", steps=4)
    write_run(scenario, tmp_path)
    report = analyze(tmp_path)
    assert report.advice is not None
    assert report.advice.verdict == "keep"
    assert report.advice.bucket_cap_mb.predictions == []
    assert "hides the buckets already" in report.advice.reason
    assert report.undefined["advice.bucket_cap_mb.best"] == report.advice.reason
    assert "advice.saving_ns" in report.undefined
    assert not [f for f in report.findings if f.rule == "bucket-cap"]


@pytest.mark.parametrize(
    ("buckets", "what"),
    [([[ONE_MIB] * 4, [ONE_MIB] * 4], "one size"), ([[ONE_MIB] * 4, [ONE_MIB] * 5], "sizes too much alike")],
)
def test_sizes_that_tell_nothing(tmp_path: Path, buckets: list[list[int]], what: str) -> None:
    write_run(ddp_run(buckets=buckets, overlap="none", steps=4), tmp_path)
    done = rankscope("advise", tmp_path)
    assert done.returncode == 2
    text = " ".join(done.stdout.split())
    assert what in text
    assert "calibrate=True" in text


def test_a_missing_rank(tmp_path: Path) -> None:
    many_buckets(tmp_path / "run")
    next((tmp_path / "run").glob("*1*")).unlink()
    done = rankscope("advise", tmp_path / "run")
    assert done.returncode == 2
    assert "missing" in done.stdout


def test_no_ddp(tmp_path: Path) -> None:
    done = rankscope("advise", write_plain_run(tmp_path / "run"))
    assert done.returncode == 2
    assert done.stdout == ""
    assert "no DDP bucket" in done.stderr


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--caps", "1,x"], "'x' is no size"),
        (["--caps", "0"], "'0' is no size"),
        (["--cap-list", "nan"], "'nan' is no size"),
        (["--bandwidth", "-3"], "--bandwidth must be a number above 0"),
        (["-o", "advice.xyz"], "cannot tell the format"),
    ],
)
def test_bad_options(tmp_path: Path, words: list[str], text: str) -> None:
    done = rankscope("advise", tmp_path, *words)
    assert done.returncode == 2
    assert text in done.stderr
