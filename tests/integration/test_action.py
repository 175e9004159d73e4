"""The GitHub action: its own shell steps, run as a runner runs them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.command import rankscope, strict_json, write_run

ROOT = Path(__file__).resolve().parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
PROGRAMS = Path(sys.executable).parent
INSTALL, CHECK = ACTION["runs"]["steps"]
EXPRESSION = re.compile(r"\$\{\{\s*inputs\.([a-z-]+)\s*\}\}")


@dataclass(frozen=True)
class Done:
    """What a step left."""

    status: int
    log: str
    outputs: dict[str, str]
    summary: str


def run_step(step: dict[str, Any], folder: Path, programs: Path = PROGRAMS, /, **inputs: str) -> Done:
    """Run a step with `bash -eo pipefail`, as GitHub does, with the action's inputs as it would set them."""
    defaults = {name: spec.get("default", "") for name, spec in ACTION["inputs"].items()}
    given = {name: inputs.pop(name.replace("-", "_"), default) for name, default in defaults.items()}
    assert not inputs, f"the action has no such inputs: {inputs}"
    script = folder / "step.sh"
    script.write_text(step["run"])
    files = {name: folder / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for path in files.values():
        path.write_text("")
    environment = {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        **{
            key: EXPRESSION.sub(lambda match: given[match[1]], text)
            for key, text in step.get("env", {}).items()
        },
        **{key: str(path) for key, path in files.items()},
        "GITHUB_ACTION_PATH": str(ROOT),
        "RUNNER_TEMP": str(folder),
    }
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    lines = files["GITHUB_OUTPUT"].read_text().splitlines()
    return Done(
        status=done.returncode,
        log=done.stdout + done.stderr,
        outputs=dict(line.split("=", 1) for line in lines),
        summary=files["GITHUB_STEP_SUMMARY"].read_text(),
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of each 60 us of communication 23 are hidden: 38.33 %."""
    return write_run(tmp_path_factory.mktemp("action") / "a run")


def test_no_expression_stands_in_a_script() -> None:
    """GitHub pastes expressions into the text: an input would be run by the shell."""
    assert not any("${{" in step["run"] for step in ACTION["runs"]["steps"])
    used = set(EXPRESSION.findall(str([step.get("env", {}) for step in ACTION["runs"]["steps"]])))
    assert used | {"install"} == set(ACTION["inputs"])


def test_limits_are_kept(run: Path, tmp_path: Path) -> None:
    done = run_step(CHECK, tmp_path, run=str(run), limits="min_overlap_ratio=0.3\nmax_missing_ranks=0\n")
    assert done.status == 0, done.log
    assert (done.outputs["status"], done.outputs["passed"], done.outputs["html"]) == ("0", "true", "")
    assert "::notice title=rankscope::a run: All 2 limits are kept." in done.log
    assert done.summary.startswith("<!-- rankscope -->\n## ✅ rankscope: a run")
    assert strict_json(Path(done.outputs["json"]).read_text())["passed"] is True
    assert Path(done.outputs["markdown"]).read_text() == done.summary
    assert set(done.outputs) == {
        re.findall(r"outputs\.(\w+)", o["value"])[0] for o in ACTION["outputs"].values()
    }


def test_a_broken_limit_fails_the_job(run: Path, tmp_path: Path) -> None:
    (tmp_path / "limits.toml").write_text("[limits]\nmin_overlap_ratio = 0.5\n")
    done = run_step(CHECK, tmp_path, run=str(run), config="limits.toml", output_directory="out")
    assert done.status == 1
    assert (done.outputs["status"], done.outputs["passed"]) == ("1", "false")
    error = "::error file=limits.toml,title=min_overlap_ratio::hidden communication is 38.33 %25 in whole run"
    assert error in done.log
    assert "<failure" in (tmp_path / "out" / "junit.xml").read_text()
    again = run_step(CHECK, tmp_path, run=str(run), config="limits.toml", output_directory="out")
    assert again.status == 1


def test_against_a_baseline(run: Path, tmp_path: Path) -> None:
    assert rankscope("baseline", "update", run, "-o", tmp_path / "base.json").returncode == 0
    done = run_step(
        CHECK,
        tmp_path,
        run=str(run),
        baseline="base.json",
        max_regression="overlap_ratio=2pp,exposed=5%",
        fail_on_worse="true",
    )
    assert done.status == 0, done.log
    assert Path(done.outputs["html"]).read_text().startswith("<!DOCTYPE html>")
    assert "No difference." in done.summary


def test_what_cannot_be_done_fails_the_job_too(tmp_path: Path) -> None:
    done = run_step(CHECK, tmp_path, run="nowhere", limits="min_overlap_ratio=0.3")
    assert done.status == 2
    assert (done.outputs["status"], done.outputs["passed"]) == ("2", "")
    assert "nowhere does not exist" in done.log


@pytest.mark.parametrize("text", ["$(touch pwned) `touch pwned` ; touch pwned", "--help", "x' \"y\nz"])
def test_inputs_are_text(text: str, run: Path, tmp_path: Path) -> None:
    for name in ("run", "config", "baseline", "max_regression", "limits"):
        inputs = {"run": str(run), "limits": "min_overlap_ratio=0.3", name: text}
        assert run_step(CHECK, tmp_path, **inputs).status == 2
    assert not (tmp_path / "pwned").exists()


def test_it_installs_itself_and_runs(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both steps in an environment that has the dependencies, but not rankscope."""
    venv.create(tmp_path / "venv", with_pip=True)
    monkeypatch.setenv("PYTHONPATH", sysconfig.get_path("purelib"))
    done = run_step(INSTALL, tmp_path, tmp_path / "venv" / "bin", run="unused")
    if done.status and "hatchling" in done.log:
        pytest.skip("pip cannot get the build backend here")
    assert done.status == 0, done.log
    assert (tmp_path / "venv" / "bin" / "rankscope").exists()
    done = run_step(CHECK, tmp_path, tmp_path / "venv" / "bin", run=str(run), limits="min_overlap_ratio=0.3")
    assert (done.status, done.outputs["passed"]) == (0, "true"), done.log
