"""The verdict on limits as workflow commands of GitHub Actions: annotations on the job."""

from __future__ import annotations

from rankscope.model.verdict import Verdict
from rankscope.renderers.check_tables import say_verdict
from rankscope.renderers.escape import MESSAGE_LIMIT, make_inert

_ANNOTATIONS = 10
"""GitHub shows ten errors and ten warnings of a step."""


def render_github(verdict: Verdict, file: str | None = None) -> str:
    """One `::error` per limit that closes the gate, a `::warning` per warning, and a `::notice` with the sum.

    Texts are inert and escaped, so that a name from a trace cannot become a command of its own.

    Args:
        verdict: the verdict.
        file: file that annotations point at (the limits file); none if None.
    """
    lines = [
        _command("error", outcome.message, outcome.name, file) for outcome in verdict.failed[:_ANNOTATIONS]
    ]
    left_out = len(verdict.failed) - len(lines)
    if left_out:
        lines[-1] = _command(
            "error", f"{left_out + 1:,} more limits close the gate; see the report", "rankscope", file
        )
    lines += [_command("warning", w, "rankscope", file) for w in verdict.warnings[:_ANNOTATIONS]]
    lines.append(_command("notice", f"{verdict.run}: {say_verdict(verdict)}", "rankscope", None))
    return "\n".join(lines) + "\n"


def _command(kind: str, message: str, title: str, file: str | None) -> str:
    properties = {"file": file, "title": title}
    named = ",".join(
        f"{key}={_escape_property(value)}" for key, value in properties.items() if value is not None
    )
    return f"::{kind} {named}::{_escape(make_inert(message, MESSAGE_LIMIT))}"


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape(make_inert(text)).replace(":", "%3A").replace(",", "%2C")
