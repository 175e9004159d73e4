"""Strict JSON of anything that a file may hold, whatever its strings are."""

from __future__ import annotations

from typing import Any

import msgspec


def write_json(value: object, *, indent: int = 0) -> str:
    r"""The value as JSON in UTF-8: NaN and infinity become null, unpaired surrogates are spelled as `\\udc80`.

    Args:
        value: JSON types, dataclasses and numpy's numbers.
        indent: blanks per level; 0 for all on one line.

    >>> write_json({"a": [1, float("nan"), "\ud800"]})
    '{"a":[1,null,"\\\\ud800"]}'
    """
    try:
        text = msgspec.json.encode(value, enc_hook=unwrap_scalar)
    except UnicodeEncodeError:
        tree = msgspec.to_builtins(value, str_keys=True, enc_hook=unwrap_scalar)
        text = msgspec.json.encode(_spell_surrogates(tree))
    return (msgspec.json.format(text, indent=indent) if indent else text).decode()


def unwrap_scalar(value: Any) -> Any:  # noqa: ANN401 - whatever msgspec does not know
    """The number of Python in a number of numpy.

    Raises:
        NotImplementedError: it is none.
    """
    if hasattr(value, "item"):
        return value.item()
    raise NotImplementedError(f"{type(value).__name__} has no place in JSON")


def _spell_surrogates(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, list):
        return [_spell_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_spell_surrogates(key): _spell_surrogates(item) for key, item in value.items()}
    return value
