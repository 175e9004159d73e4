"""Text from traces made inert: kernel, group and file names are whatever somebody wrote into a file.

A name may hold line breaks, terminal escapes, marks that reverse the reading direction, Markdown, HTML or a
workflow command (`::error ...`) that a CI service would obey. Each format escapes what is special to it; this
module does what all of them need, and what Markdown needs. HTML is escaped by the template engine.
"""

from __future__ import annotations

import json
import re

NAME_LIMIT = 120
"""Longest name that is shown, in characters."""

MESSAGE_LIMIT = 600
"""Longest message or hint that is shown, in characters."""

_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}

# Commands that a runner of GitHub Actions obeys at the start of a line, and the older `##[` and `##vso[`.
# Only known words are taken apart: `::` is also what separates C++ namespaces in kernel names.
_WORKFLOW_COMMAND = re.compile(
    r"::(?=(?:error|warning|notice|debug|group|endgroup|echo|command-output"
    r"|(?:add|remove)-(?:mask|path|matcher)|(?:set|save|stop)-[a-z]+)\b)",
    re.IGNORECASE,
)
_RUNNER_COMMAND = re.compile(r"##(?=\[|vso\[)", re.IGNORECASE)

_MARKDOWN_SPECIAL = re.compile(r"[&<>|`*~\[\]\\$!{}]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|:(?=[^\s\d])")
_MENTION_OR_ISSUE = re.compile(r"@|(?<!\w)#(?=\d)|(?<!\w)(?:GH|gh)-(?=\d)")
_HEADING_OR_LIST = re.compile(r"^\s*(?:#|[-+=]|\d{1,9}[.)](?=\s|$))")
_BARE_HOST = re.compile(r"\b(www)\.", re.IGNORECASE)
_ZERO_WIDTH_SPACE = "&#8203;"
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:[num]?s|[KMG]?i?B(?:/s)?)\b|%)")


def make_inert(text: str, limit: int = NAME_LIMIT) -> str:
    r"""One line of text without control or direction characters, without workflow commands, and not too long.

    Args:
        text: any text, unpaired surrogates included.
        limit: greatest number of characters of the answer.

    >>> make_inert("gemm\n::error::boo \u202egnp.exe")
    'gemm\\n: :error::boo \\u202egnp.exe'
    >>> make_inert("k" * 50, limit=5)
    'kkkk…'
    """
    if not text.isprintable():
        # Cut first: a name of megabytes need not be walked through.
        text = "".join(_show_character(c) for c in text[: limit + 1])
    text = _RUNNER_COMMAND.sub("# #", _WORKFLOW_COMMAND.sub(": :", text))
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _show_character(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    short = _SHORT_ESCAPES.get(character)
    if short is not None:
        return short
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return f"\\u{code:04x}" if code > 0xFF else f"\\x{code:02x}"


def bind_units(text: str, binder: str = "\N{NO-BREAK SPACE}") -> str:
    """The text with `binder` between numbers and units, so that no line ends between them.

    >>> bind_units("22.0 % of 46.1 ms", binder="_")
    '22.0_% of 46.1_ms'
    """
    return _BEFORE_UNIT.sub(binder, text)


def escape_markdown(text: str, limit: int = NAME_LIMIT) -> str:
    """The text as Markdown (GitHub's flavour) that shows exactly this text, in a table cell too.

    Special characters become character references, which neither Markdown nor HTML nor a table reads as
    structure. Invisible spaces after `@` and before numbers keep GitHub from mentioning people and issues.

    >>> escape_markdown("a|b <img> all_reduce")
    'a&#124;b &#60;img&#62; all_reduce'
    """
    # The line is split at mentions first, since their invisible space must not be escaped in turn.
    inert = make_inert(text, limit)
    parts, end = [], 0
    for match in _MENTION_OR_ISSUE.finditer(inert):
        parts += [_refer(inert[end : match.start()]), _refer_all(match.group()), _ZERO_WIDTH_SPACE]
        end = match.end()
    escaped = "".join([*parts, _refer(inert[end:])])
    return _HEADING_OR_LIST.sub(lambda match: _refer_all(match.group()), escaped, count=1)


def _refer(text: str) -> str:
    escaped = _MARKDOWN_SPECIAL.sub(lambda match: _refer_all(match.group()), text)
    return _BARE_HOST.sub(r"\1&#46;", escaped)


def _refer_all(text: str) -> str:
    return "".join(f"&#{ord(character)};" for character in text)


def escape_plot(text: str, limit: int = NAME_LIMIT) -> str:
    """The text for a label of a plot: plotly reads tags and character references in labels, links included.

    >>> escape_plot("<a href='x'>y</a> & z")
    "&lt;a href='x'&gt;y&lt;/a&gt; &amp; z"
    """
    return make_inert(text, limit).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def embed_json(value: object) -> str:
    r"""JSON that may stand inside a `<script>` element: it cannot close the element nor open a comment.

    >>> embed_json({"name": "</script>"})
    '{"name":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
