"""The frame that all pages share: one file, no network, colours for a light and a dark screen."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined

from rankscope.renderers.escape import bind_units
from rankscope.renderers.glossary import TERMS
from rankscope.renderers.palette import Part


def render_page(
    template: str, values: dict[str, Any], *, policy: str, colors: Sequence[Part], styles: Sequence[str]
) -> str:
    """A page that needs nothing else, ending with a line break; all values are escaped but where `safe` says not.

    Args:
        template: asset that extends `page.html.j2`.
        values: what it shows.
        policy: the page's Content-Security-Policy.
        colors: parts whose colours it uses, as `var(--slug)`.
        styles: assets with its style sheets.
    """
    environment = Environment(
        loader=FunctionLoader(read_asset),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["bind_units"] = bind_units
    environment.globals["terms"] = TERMS
    style = "".join(read_asset(name) for name in styles)
    return environment.get_template(template).render(**values, policy=policy, colors=colors, style=style)


def read_asset(name: str) -> str:
    """Text of a file that the pages are made of."""
    return (files("rankscope.renderers") / "assets" / name).read_text(encoding="utf-8")
