"""Takes host names and paths out of a trace's text."""

from __future__ import annotations

import re

# Keys of Kineto whose value is the host's name or the file's own path.
_VALUES = re.compile(rb'("host_name"\s*:\s*)"(?:[^"\\]|\\.)*"')
# A folder: a slash that begins a path (nothing of a name before it), then parts that end in slashes. Colons and
# brackets end it, so that C++ names and "file.py(12): function" keep what follows the folder.
_FOLDERS = re.compile(
    rb"""(?<![\w.)\]/\\-])          # not inside a name or a relative path
         (?:[A-Za-z]:)?             # a Windows drive
         (?:/|\\\\)                 # JSON doubles a backslash
         (?:[^/\\"\n:()<>|,;]+(?:/|\\\\))+
    """,
    re.VERBOSE,
)


def scrub_text(text: bytes) -> bytes:
    r"""`text` (whole lines of a trace) without the host's name and without folders; base names stay.

    >>> scrub_text(b'"name": "/home/ann/job/train.py(12): main"')
    b'"name": "train.py(12): main"'
    >>> scrub_text(b'"host_name": "node17.corp"')
    b'"host_name": ""'
    >>> scrub_text(b'"name": "aten::div", "a": 4 / 2')
    b'"name": "aten::div", "a": 4 / 2'
    """
    return _FOLDERS.sub(b"", _VALUES.sub(rb'\1""', text))
