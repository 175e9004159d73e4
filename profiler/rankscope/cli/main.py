"""Entry point of the `rankscope` command: turns errors into text and an exit status.

0: fine. 1: a limit was broken. 2: could not do it, or a file was lost. 130: interrupted. 143: terminated.

The commands are imported when they are run: a process that reads files for another imports this module too, as its
main module, and needs none of them.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback

from rankscope.cli.status import EXIT_COULD_NOT, EXIT_INTERRUPTED, EXIT_TERMINATED
from rankscope.errors import RankscopeError

_DEBUG_VARIABLE = "RANKSCOPE_DEBUG"


class TerminatedError(KeyboardInterrupt):
    """SIGTERM came: ends the work as Ctrl-C does, so that temporary files and workers go too."""


def _terminate(_signal: int, _frame: object) -> None:
    raise TerminatedError


def main() -> None:
    """Run the command line and exit."""
    signal.signal(signal.SIGTERM, _terminate)
    sys.exit(run_command_line())


def run_command_line() -> int:
    """Run the command line; the exit status."""
    _open_closed_streams()
    try:
        status = _run_app()
        sys.stdout.flush()
        return status
    except RankscopeError as error:
        _complain(f"error: {error}\n  (docs/errors.md#{error.slug})")
    except TerminatedError:
        _complain("terminated; nothing was left half-written")
        return EXIT_TERMINATED
    except KeyboardInterrupt:
        _complain("interrupted; nothing was left half-written")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away (`| head`): not an error of ours.
        _give_up_stdout()
        return 0
    except OSError as error:  # output into a full disk, for one
        _give_up_stdout()
        _complain(f"error: {error}\n  (docs/errors.md#error)")
    except Exception as error:  # noqa: BLE001 - the one place that turns a fault of ours into text
        if os.environ.get(_DEBUG_VARIABLE):
            traceback.print_exc()
        _complain(
            f"internal error: {type(error).__name__}: {error}\n  This is a fault of rankscope. Please report it with "
            f"the output of the same command under {_DEBUG_VARIABLE}=1."
        )
    return EXIT_COULD_NOT


def _run_app() -> int:
    """The exit status that typer comes to; what it turned into one on its own account is raised again."""
    from rankscope.cli.app import app

    try:
        app(standalone_mode=True)
    except SystemExit as exit_:
        cause: BaseException | None = exit_
        while cause is not None:
            if isinstance(cause, KeyboardInterrupt | BrokenPipeError):
                raise cause from None
            cause = cause.__cause__ or cause.__context__
        return exit_.code if isinstance(exit_.code, int) else EXIT_COULD_NOT
    return 0


def _open_closed_streams() -> None:
    """Give output that the caller has closed (`>&-`) a place to go."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - open until the end


def _give_up_stdout() -> None:
    """Keep Python from writing on exit what could not be written now."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(text: str) -> None:
    sys.stderr.write(f"rankscope: {text}\n")


if __name__ == "__main__":
    main()
