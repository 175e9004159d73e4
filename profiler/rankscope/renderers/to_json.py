"""The report as strict JSON, and back."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from rankscope.errors import FormatVersionError, InputError
from rankscope.model.json_text import unwrap_scalar, write_json
from rankscope.model.late_collectives import pick_late
from rankscope.model.report import REPORT_NAME, REPORT_VERSION, Report

_ROW_SECTIONS = ("ranks", "windows", "steps")
# What names a row comes before its figures, though the figures stand in the base class.
_LEADING_KEYS = ("step", "rank", "device", "host", "window", "file", "started_ns", "steady", "duration_ns")


def render_json(
    report: Report, *, detail: Literal["summary", "full"] = "summary", indent: bool = True
) -> str:
    """The report as strict JSON in the contract's order of keys, ending with a line break.

    Infinity and NaN, which JSON does not know, become null.

    Args:
        report: the report.
        detail: "summary" leaves out the rows per communication event and, but for the arrivals of the latest
            collectives, the maps per rank of a collective.
        indent: whether to lay the text out over lines.
    """
    tree: dict[str, Any] = msgspec.to_builtins(report, str_keys=True, enc_hook=unwrap_scalar)
    if detail == "summary":
        tree["communications"] = []
        late = {id(row) for row in pick_late(report.collectives)}
        for row, collective in zip(tree["collectives"], report.collectives, strict=True):
            row["waits_ns"] = None
            if id(collective) not in late:
                row["arrivals_ns"] = None
    for section in _ROW_SECTIONS:
        tree[section] = [_lead_with_names(row) for row in tree[section]]
    return write_json(tree, indent=2 if indent else 0) + "\n"


def _lead_with_names(row: dict[str, Any]) -> dict[str, Any]:
    return {**{key: row[key] for key in _LEADING_KEYS if key in row}, **row}


class _Head(msgspec.Struct):
    format: Any = None


def read_json(text: str | bytes) -> Report:
    """The report that `render_json` wrote, in this version or another minor one.

    Args:
        text: the whole JSON text; unknown keys are ignored.

    Returns:
        The report; what the text left out (see `render_json`) is empty.

    Raises:
        FormatVersionError: if it was written in another major version.
        InputError: if it is no report.
    """
    try:
        head = msgspec.json.decode(text, type=_Head)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise _not_a_report(f"it is no JSON object ({error})") from error
    _check_format(head.format)
    try:
        return msgspec.json.decode(text, type=Report)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise _not_a_report(f"{error}") from error


def _check_format(found: Any) -> None:  # noqa: ANN401 - any JSON value
    if not isinstance(found, dict) or found.get("name") != REPORT_NAME:
        raise _not_a_report(f'its key "format" does not say {{"name": "{REPORT_NAME}"}}')
    version = found.get("version")
    major = version.partition(".")[0] if isinstance(version, str) else ""
    if not major.isdigit():
        raise _not_a_report(f'"format.version" is {version!r} and should be text like "{REPORT_VERSION}"')
    if int(major) != int(REPORT_VERSION.partition(".")[0]):
        raise FormatVersionError(
            f"the report is written in format version {version}, and this rankscope reads version "
            f"{REPORT_VERSION} and others with the same first number. Use the rankscope that wrote it, or "
            "write the report again from the traces."
        )


def _not_a_report(reason: str) -> InputError:
    return InputError(
        f"not a rankscope report: {reason}. Expected is the output of `rankscope analyze RUN --format json`."
    )
