"""Repairs of text that is almost JSON: what some writers are known to get wrong, and nothing else.

Known faults: control characters inside strings (pytorch#113001), backslashes that escape nothing
(pytorch#98432), NaN and Infinity as bare words (kineto#105), bytes that are not UTF-8, and escapes that are
one half of a surrogate pair (a name cut in the middle of a character).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# What is right is skipped at the speed of the regular expression engine; it stops at the first fault. The
# bound keeps the engine's own stack small.
_ESCAPE = (
    rb'["\\/bfnrt]|u(?![dD][89a-fA-F])[0-9a-fA-F]{4}'
    rb"|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair of surrogates is one character
)
_RIGHT = re.compile(
    rb'(?:[^"NIin]+|null|"[^"\\\x00-\x1f]*(?:\\(?:' + _ESCAPE + rb')[^"\\\x00-\x1f]*)*"){1,5000}'
)
_LOOSE_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_NOT_A_NUMBER = re.compile(rb"(?:NaN|nan|Infinity|infinity|Inf|inf)(?![\w.])")
_ANY_ESCAPE = re.compile(rb"\\(?:(?P<right>" + _ESCAPE + rb")|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|)")
_CONTROL = re.compile(rb"[\x00-\x1f]")
_REPLACEMENT = "\ufffd".encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """Text made valid, and what was wrong with it.

    Attributes:
        text: the repaired text.
        faults: slug of a fault -> index of its first place in the original text.
        counts: slug of a fault -> number of places.
    """

    text: bytes
    faults: dict[str, int]
    counts: dict[str, int]


class _Notes:
    """Where each kind of fault stands first, and how often it occurs."""

    def __init__(self) -> None:
        self.faults: dict[str, int] = {}
        self.counts: dict[str, int] = {}

    def add(self, kind: str, index: int, times: int = 1) -> None:
        self.faults.setdefault(kind, index)
        self.counts[kind] = self.counts.get(kind, 0) + times


def repair_json(text: bytes) -> Repair:
    r"""Repaired copy of `text`; text with other faults comes back with those still in it.

    >>> repair_json(b'{"a": NaN, "b": -Infinity, "c": "C:\\_d"}').text
    b'{"a": null, "b": null, "c": "C:\\\\_d"}'
    """
    notes = _Notes()
    pieces: list[bytes] = []
    position = 0
    while position < len(text):
        right = _RIGHT.match(text, position)
        if right is not None:
            pieces.append(right.group())
            position = right.end()
        else:
            position = _repair_at(text, position, pieces, notes)
    # Last, since it changes the length of the text, and indices are those of the original.
    repaired = _repair_encoding(text, b"".join(pieces), notes)
    return Repair(text=repaired, faults=notes.faults, counts=notes.counts)


def _repair_encoding(original: bytes, text: bytes, notes: _Notes) -> bytes:
    try:
        original.decode("utf-8")
    except UnicodeDecodeError as error:
        repaired = text.decode("utf-8", errors="replace").encode("utf-8")
        notes.add("encoding", error.start, repaired.count(_REPLACEMENT) - text.count(_REPLACEMENT))
        return repaired
    return text


def _repair_at(text: bytes, index: int, pieces: list[bytes], notes: _Notes) -> int:
    """Append the repaired token at `index` to `pieces` and return the index after it."""
    if text[index] == ord('"'):
        string = _LOOSE_STRING.match(text, index)
        if string is None:  # it never closes: beyond repair
            pieces.append(text[index:])
            return len(text)
        pieces.append(_repair_string(string.group(), index, notes))
        return string.end()
    word = _NOT_A_NUMBER.match(text, index)
    if word is None:
        pieces.append(text[index : index + 1])
        return index + 1
    is_negative = bool(pieces) and pieces[-1].endswith(b"-")
    if is_negative:
        pieces[-1] = pieces[-1][:-1]
    notes.add("not-a-number", index - is_negative)
    pieces.append(b"null")
    return word.end()


def _repair_string(string: bytes, index: int, notes: _Notes) -> bytes:
    def fix_escape(match: re.Match[bytes]) -> bytes:
        if match["right"] is not None:
            return match.group()
        notes.add("escape" if match["half"] is None else "surrogate", index + match.start())
        return rb"\\" if match["half"] is None else rb"\ufffd"

    repaired = _ANY_ESCAPE.sub(fix_escape, string)
    control = _CONTROL.search(string)
    if control is not None:
        notes.add("control-character", index + control.start(), len(_CONTROL.findall(string)))
        repaired = _CONTROL.sub(lambda match: b"\\u%04x" % match.group()[0], repaired)
    return repaired
