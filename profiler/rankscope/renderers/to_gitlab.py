"""The verdict on limits as a GitLab code quality report."""

from __future__ import annotations

import hashlib
import json

from rankscope.model.verdict import Verdict
from rankscope.renderers.escape import MESSAGE_LIMIT, make_inert

DEFAULT_FILE = "rankscope.toml"


def render_gitlab(verdict: Verdict, file: str | None = None) -> str:
    """One issue per limit that closes the gate and per warning, as strict JSON, ending with a line break.

    Args:
        verdict: the verdict.
        file: path in the repository that issues point at; "rankscope.toml" if None.
    """
    issues = [
        (outcome.name, outcome.message, "critical" if outcome.status == "broken" else "major")
        for outcome in verdict.failed
    ]
    issues += [("warning", warning, "minor") for warning in verdict.warnings]
    rows = [
        {
            "description": make_inert(f"{name}: {message}", MESSAGE_LIMIT),
            "check_name": f"rankscope/{make_inert(name)}",
            # Equal for the same limit or warning in every pipeline, whatever was measured.
            "fingerprint": _fingerprint(name, message if name == "warning" else "", verdict.run),
            "severity": severity,
            "location": {"path": file or DEFAULT_FILE, "lines": {"begin": 1}},
        }
        for name, message, severity in issues
    ]
    return json.dumps(rows, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def _fingerprint(*parts: str) -> str:
    text = "\0".join(parts).encode("utf-8", "backslashreplace")
    return hashlib.sha256(text).hexdigest()
