"""The verdict on limits as JUnit XML: a test suite per scope, a test case per limit."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from rankscope.model.verdict import Outcome, Verdict
from rankscope.renderers.check_tables import say_verdict
from rankscope.renderers.escape import MESSAGE_LIMIT, make_inert

_PLACES_LISTED = 100


def render_junit(verdict: Verdict) -> str:
    """The verdict as JUnit XML (the schema of Jenkins' xUnit plugin), ending with a line break.

    A broken limit is a failure, one that was not measured an error, and one that was not measured but may be so
    is skipped. There is no time and no host in it, so that equal runs give equal files.
    """
    root = ET.Element("testsuites", {"name": "rankscope", **_count(verdict.outcomes)})
    for suite in dict.fromkeys(outcome.suite for outcome in verdict.outcomes):
        outcomes = tuple(outcome for outcome in verdict.outcomes if outcome.suite == suite)
        skipped = str(sum(outcome.status == "not measured, allowed" for outcome in outcomes))
        attributes = {"name": f"rankscope.{suite}", **_count(outcomes), "skipped": skipped}
        element = ET.SubElement(root, "testsuite", attributes)
        for outcome in outcomes:
            _add_case(element, outcome)
        _add_text(element, "system-out", _say(verdict))
    ET.indent(root)
    text = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _count(outcomes: tuple[Outcome, ...]) -> dict[str, str]:
    return {
        "tests": str(len(outcomes)),
        "failures": str(sum(outcome.status == "broken" for outcome in outcomes)),
        "errors": str(sum(outcome.status == "not measured" for outcome in outcomes)),
    }


def _add_case(suite: ET.Element, outcome: Outcome) -> None:
    case = ET.SubElement(
        suite, "testcase", name=_inert(outcome.name), classname=f"rankscope.{outcome.suite}", time="0"
    )
    message = _inert(outcome.message)
    if outcome.status == "broken":
        failure = ET.SubElement(case, "failure", type="limit", message=message)
        places = [_inert(f"{m.place}: {m.text}") for m in outcome.broken[:_PLACES_LISTED]]
        left_out = len(outcome.broken) - len(places)
        more = [f"and {left_out:,} more"] if left_out else []
        failure.text = "\n".join([message, *places, *more])
    elif outcome.status == "not measured":
        _add_text(case, "error", message, type="not-measured", message=message)
    elif outcome.status == "not measured, allowed":
        ET.SubElement(case, "skipped", message=message)
    else:
        _add_text(case, "system-out", message)


def _add_text(parent: ET.Element, tag: str, text: str, **attributes: str) -> None:
    ET.SubElement(parent, tag, attributes).text = text


def _say(verdict: Verdict) -> str:
    warnings = [f"warning: {_inert(warning)}" for warning in verdict.warnings]
    return "\n".join([f"{_inert(verdict.run)}: {say_verdict(verdict)}", *warnings])


def _inert(text: str) -> str:
    """Text without characters that XML 1.0 forbids: control characters and surrogates are spelled out."""
    return make_inert(text, MESSAGE_LIMIT)
