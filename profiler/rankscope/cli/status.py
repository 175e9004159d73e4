"""Exit statuses of the command line; docs/errors.md lists them."""

from __future__ import annotations

import signal

EXIT_BROKEN = 1
"""A limit was broken."""

EXIT_COULD_NOT = 2
"""It could not be done: bad input, nothing to analyse, a file lost, a wrong option."""

EXIT_INTERRUPTED = 128 + signal.SIGINT
EXIT_TERMINATED = 128 + signal.SIGTERM
