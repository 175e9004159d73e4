"""Damage to the text of a trace, by bytes and by structure, with a note of which events it touched."""

from __future__ import annotations

import gzip
import json
import random
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanTrace:
    """The text of a trace and where its events stand in it.

    Attributes:
        text: the file.
        starts, ends: byte offsets of each event, in order.
    """

    text: bytes
    starts: tuple[int, ...]
    ends: tuple[int, ...]

    @property
    def first(self) -> int:
        """Where the events begin."""
        return self.starts[0]

    @property
    def last(self) -> int:
        """Where the events end."""
        return self.ends[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """A damaged text.

    Attributes:
        kind: name of the mutator.
        stored: the file.
        touched: indices of the events of which a byte was changed, removed or moved.
        touches_frame: whether text outside the events and the commas between them was changed.
        first_byte: no fault can stand before it, in the unpacked text.
        keeps_all: whether the figures must be those of the clean file.
    """

    kind: str
    stored: bytes
    touched: frozenset[int] = frozenset()
    touches_frame: bool = False
    first_byte: int = 0
    keeps_all: bool = False


def mutate(clean: CleanTrace, rng: random.Random) -> Mutation:
    """One mutation, chosen by `rng`."""
    return rng.choice(MUTATORS)(clean, rng)


def _edit(kind: str, clean: CleanTrace, start: int, end: int, new: bytes) -> Mutation:
    """The text with [start, end) replaced."""
    lowest, highest = bisect_right(clean.ends, start), bisect_left(clean.starts, end)
    touched = frozenset(range(lowest, highest))
    return Mutation(
        kind=kind,
        stored=clean.text[:start] + new + clean.text[end:],
        touched=touched,
        touches_frame=start < clean.first or end > clean.last,
        first_byte=min([start, *(clean.starts[i] for i in touched)]),
    )


def _somewhere(clean: CleanTrace, rng: random.Random) -> int:
    return rng.randrange(len(clean.text))


def _cut(clean: CleanTrace, rng: random.Random) -> Mutation:
    return _edit("cut", clean, _somewhere(clean, rng), len(clean.text), b"")


def _flip(clean: CleanTrace, rng: random.Random) -> Mutation:
    at = _somewhere(clean, rng)
    return _edit("flip", clean, at, at + 1, bytes([clean.text[at] ^ (1 << rng.randrange(8))]))


def _overwrite(clean: CleanTrace, rng: random.Random) -> Mutation:
    at, size = _somewhere(clean, rng), rng.choice((1, 2, 7, 60, 900))
    return _edit("overwrite", clean, at, min(at + size, len(clean.text)), rng.randbytes(size))


def _remove(clean: CleanTrace, rng: random.Random) -> Mutation:
    at, size = _somewhere(clean, rng), rng.choice((1, 3, 30, 500, 5000))
    return _edit("remove", clean, at, min(at + size, len(clean.text)), b"")


def _splice(clean: CleanTrace, rng: random.Random) -> Mutation:
    source, size, at = _somewhere(clean, rng), rng.choice((1, 9, 80, 700, 6000)), _somewhere(clean, rng)
    return _edit("splice", clean, at, at, clean.text[source : source + size])


def _duplicate_event(clean: CleanTrace, rng: random.Random) -> Mutation:
    i, at = rng.randrange(len(clean.starts)), rng.choice(clean.ends)
    event = clean.text[clean.starts[i] : clean.ends[i]]
    return _edit("duplicate event", clean, at, at, b",\n  " + event)


def _remove_comma(clean: CleanTrace, rng: random.Random) -> Mutation:
    i = rng.randrange(len(clean.starts) - 1)
    gap = clean.text[clean.ends[i] : clean.starts[i + 1]]
    new = rng.choice((gap.replace(b",", b""), gap.replace(b",", b",,"), gap.replace(b",", b"]")))
    return _edit("comma", clean, clean.ends[i], clean.starts[i + 1], new)


def _token(clean: CleanTrace, rng: random.Random) -> Mutation:
    """A byte that has a meaning in JSON, at any place."""
    at, token = (
        _somewhere(clean, rng),
        rng.choice([b'"', b"{", b"}", b"[", b"]", b",", b":", b"\\", b"-", b"e", b"\0"]),
    )
    return _edit("token", clean, at, at + rng.randrange(2), token)


def _rewrite_event(
    clean: CleanTrace, rng: random.Random, kind: str, change: Callable[[Any], str]
) -> Mutation:
    i = rng.randrange(len(clean.starts))
    event = json.loads(clean.text[clean.starts[i] : clean.ends[i]])
    return _edit(kind, clean, clean.starts[i], clean.ends[i], change(event).encode("utf-8", "surrogatepass"))


def _value(clean: CleanTrace, rng: random.Random) -> Mutation:
    """A value of the wrong type or beyond all bounds in place of one of an event or of its arguments."""
    odd: Any = rng.choice(
        (None, True, [], {}, "", "soon", -1, 1 << 63, 10**400, 1e308, -0.0, [[]], {"a": {}}, "9" * 30)
    )

    def change(event: Any) -> str:
        inner = event.get("args")
        target = inner if isinstance(inner, dict) and inner and rng.random() < 0.5 else event
        target[rng.choice(list(target))] = odd
        return json.dumps(event)

    return _rewrite_event(clean, rng, "value", change)


def _deep(clean: CleanTrace, rng: random.Random) -> Mutation:
    depth, opening = rng.choice((10, 900, 3_000, 200_000)), rng.choice((("[", "]"), ('{"a":', "}")))
    deep = opening[0] * depth + "1" + opening[1] * depth

    def change(event: Any) -> str:
        return json.dumps({**event, "deep": "@"}).replace('"@"', deep)

    return _rewrite_event(clean, rng, "deep nesting", change)


def _long(clean: CleanTrace, rng: random.Random) -> Mutation:
    text = rng.choice(("x", "},{", '\\"', "▲", "]")) * rng.choice((1_000, 100_000, 1_500_000))
    key = rng.choice(("name", "note", "cat"))
    return _rewrite_event(clean, rng, "long string", lambda event: json.dumps({**event, key: text}))


def _repeat_key(clean: CleanTrace, rng: random.Random) -> Mutation:
    key, value = (
        rng.choice(("ts", "dur", "ph", "cat", "name", "pid", "args")),
        rng.choice(("1", '"X"', "null", "{}")),
    )
    return _rewrite_event(
        clean, rng, "repeated key", lambda event: json.dumps(event)[:-1] + f', "{key}": {value}}}'
    )


def _encoding(clean: CleanTrace, rng: random.Random) -> Mutation:
    name = "größe ▲ 名前"
    bad = rng.choice(
        (name.encode("utf-16"), "größe".encode("latin-1"), name.encode("shift-jis", "replace"), b"\xff\xfe")
    )
    i = rng.randrange(len(clean.starts))
    at = clean.starts[i] + rng.randrange(clean.ends[i] - clean.starts[i])
    return _edit("encoding", clean, at, at, bad)


def _escapes(clean: CleanTrace, rng: random.Random) -> Mutation:
    odd = rng.choice((r"\ud800", r"\udc00", r"\u12", r"\x41", "\\", "\x01", "\n", r"\ud83d\ude00", '\\"'))
    return _rewrite_event(
        clean, rng, "escape", lambda event: json.dumps({**event, "name": "a@b"}).replace("@", odd)
    )


def _reorder(clean: CleanTrace, rng: random.Random) -> Mutation:
    """The keys of an event in another order: the same event."""

    def change(event: Any) -> str:
        keys = list(event)
        rng.shuffle(keys)
        return json.dumps({key: event[key] for key in keys})

    made = _rewrite_event(clean, rng, "reordered keys", change)
    return Mutation(kind=made.kind, stored=made.stored, keeps_all=True)


def _layout(clean: CleanTrace, rng: random.Random) -> Mutation:
    """Other whitespace between the events, a byte order mark, or another compression: the same trace."""
    space = rng.choice((b",", b" ,\t", b",\r\n\r\n", b"," + b" " * 5_000))
    events = [clean.text[a:b] for a, b in zip(clean.starts, clean.ends, strict=True)]
    text = clean.text[: clean.first] + space.join(events) + clean.text[clean.last :]
    text = rng.choice((text, b"\xef\xbb\xbf" + text, b"\n \t" + text + b"\r\n"))
    if rng.random() < 0.5:
        half = len(text) // 2
        text = gzip.compress(text[:half], 1) + gzip.compress(text[half:], 1)
    return Mutation(kind="layout", stored=text, keeps_all=True)


def _gzip(clean: CleanTrace, rng: random.Random) -> Mutation:
    """Damage to the compressed file: its check shows it, or nothing was changed that matters."""
    stored = bytearray(gzip.compress(clean.text, 1, mtime=0))
    at = rng.randrange(len(stored))
    if rng.random() < 0.4:
        del stored[at:]
    elif rng.random() < 0.5:
        stored[at] ^= 1 << rng.randrange(8)
    else:
        stored[at:at] = rng.randbytes(rng.choice((1, 20)))
    return Mutation(kind="gzip", stored=bytes(stored), keeps_all=True)


MUTATORS: tuple[Callable[[CleanTrace, random.Random], Mutation], ...] = (
    _cut,
    _flip,
    _overwrite,
    _remove,
    _splice,
    _duplicate_event,
    _remove_comma,
    _token,
    _value,
    _deep,
    _long,
    _repeat_key,
    _encoding,
    _escapes,
    _reorder,
    _layout,
    _gzip,
)
