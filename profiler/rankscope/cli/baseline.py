"""`rankscope baseline`: a small JSON file of a run, to commit and compare with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankscope.cli.gate_inputs import read_side
from rankscope.cli.options import CommPatterns, Processes
from rankscope.cli.output import check_writable, say, write_file
from rankscope.errors import InputError, UsageError
from rankscope.units import format_size

if TYPE_CHECKING:
    from rankscope.model.snapshot import Baseline

DEFAULT_BASELINE = Path("rankscope-baseline.json")

baseline_app = typer.Typer(no_args_is_help=True, help="Keep a run as a small JSON file to compare with.")


@baseline_app.callback()
def _baseline() -> None:
    """Keep a run as a small JSON file to compare with."""


_Runs = Annotated[
    list[str],
    typer.Argument(
        help="Runs of one state of the code; three or more show how much runs differ without a change."
    ),
]
_Output = Annotated[Path, typer.Option("--output", "-o", help="The baseline to write.")]
_Add = Annotated[
    bool, typer.Option("--add", help="Keep the runs that the file holds already, newest 4 in all.")
]
_Force = Annotated[bool, typer.Option("--force", help="Replace a file that is no baseline.")]


@baseline_app.command("update")
def update(
    runs: _Runs,
    *,
    output: _Output = DEFAULT_BASELINE,
    add: _Add = False,
    force: _Force = False,
    comm_pattern: CommPatterns,
    processes: Processes = 0,
) -> None:
    """Write the baseline of runs: figures, values per step and the largest kernels, under 20 KB."""
    from rankscope.gate.baseline import join_baselines, render_baseline, shrink_baseline

    before = _read_before(output, force=force)
    check_writable([output], force=True)
    sides = [read_side(run, comm_pattern, processes) for run in runs]
    lost = [side.source for side in sides if side.is_partial]
    if lost:
        raise InputError(f"files of {', '.join(lost)} are lost: a baseline needs whole runs")
    kept = [before] if add and before is not None else []
    baseline = shrink_baseline(join_baselines([*kept, *(side.baseline for side in sides)]))
    text = render_baseline(baseline)
    write_file(output, text)
    number = len(baseline.runs)
    say(f"wrote {output}: {number} run{'s' if number > 1 else ''}, {format_size(len(text.encode()))}")


def _read_before(output: Path, *, force: bool) -> Baseline | None:
    """The baseline that is there already.

    Raises:
        UsageError: something else is there, and may not be replaced.
    """
    from rankscope.gate.baseline import read_baseline

    if not output.is_file():
        return None
    try:
        return read_baseline(output.read_bytes())
    except InputError as error:
        if force:
            return None
        raise UsageError(
            f"{output} exists and is not a baseline ({error}); give --force to replace it"
        ) from error
    except OSError as error:
        raise UsageError(f"cannot read {output}: {error.strerror or error}") from error
