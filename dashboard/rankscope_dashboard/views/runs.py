"""All runs of the store, the place to upload another one, and how overlap went from run to run."""

from __future__ import annotations

import streamlit as st

from rankscope.model.groups import name_ranks
from rankscope.renderers.tables import (
    Cell,
    Column,
    Table,
    duration_cell,
    ratio_cell,
    size_cell,
    text_cell,
)
from rankscope.store import RunRecord, RunStatus
from rankscope_dashboard.figures.trend import build_trend
from rankscope_dashboard.load import open_shared_store
from rankscope_dashboard.places import go_to
from rankscope_dashboard.show import (
    label_text,
    safe,
    show_figure,
    show_heading,
    show_notes,
    show_nothing,
    show_table,
    show_title,
)
from rankscope_dashboard.upload_component import own_uploads, show_upload
from rankscope_dashboard.words import COMPARE, OVERVIEW, RUNS

_SHOWN = 500
_COLUMNS = (
    Column(label="Run", numeric=False),
    Column(label="Ranks"),
    Column(label="Hidden", term="Hidden"),
    Column(label="Step", term="Step"),
    Column(label="Straggler", numeric=False, term="Straggler"),
    Column(label="Findings", numeric=False),
    Column(label="Added", numeric=False),
    Column(label="Device", numeric=False),
    Column(label="Tags", numeric=False),
    Column(label="Size"),
)


def show() -> None:
    """Draw the list of runs."""
    show_title(RUNS)
    show_upload(_open_run)
    store = open_shared_store()
    _show_pending(store.pending())
    query = st.text_input(
        "Search", placeholder="name, device, backend or key=value of a tag", key="search", bind="query-params"
    )
    everything = store.list_runs()
    found = store.list_runs(query) if query else everything
    if not everything:
        show_nothing(
            "No runs yet",
            "The store is empty.",
            "Upload the trace files of a run above, or send them with: rankscope push RUN --to URL --name NAME",
        )
    elif not found:
        show_nothing("No run matches", f"None of {len(everything):,} runs has all of these words: {query}.")
    else:
        _show_list(found)
        _show_trend(found)


def _open_run(run_id: str) -> None:
    go_to(run_id, OVERVIEW.slug)


def _show_list(records: list[RunRecord]) -> None:
    shown = records[:_SHOWN]
    rows = [_cells(record) for record in shown]
    notes = [f"Shown: the newest {_SHOWN:,} of {len(records):,} runs."] if len(records) > _SHOWN else []
    table = Table(title="Runs", columns=_COLUMNS, rows=tuple(rows), notes=tuple(notes))
    actions = st.container()
    run_ids = [record.run_id for record in shown]
    chosen = show_table(
        table,
        key="runs",
        on_select=lambda: _open_clicked(run_ids),
        selection_mode=["multi-row", "single-cell"],
    )
    with actions:
        _show_actions([shown[row] for row in chosen.selection.rows if row < len(shown)])


def _cells(record: RunRecord) -> tuple[Cell, ...]:
    ranks = f"{record.ranks:,}"
    if record.world_size is not None and record.world_size != record.ranks:
        ranks += f" of {record.world_size:,}"
    return (
        text_cell(record.name),
        Cell(text=ranks, value=record.ranks),
        ratio_cell(record.overlap_ratio, "no communication"),
        duration_cell(record.step_ns, "no steady step"),
        text_cell(_name_straggler(record)),
        text_cell(", ".join(f"{count} {severity}" for severity, count in record.findings.items())),
        text_cell(record.created_at[:16].replace("T", " ")),
        text_cell(record.device or record.backend or ""),
        text_cell(", ".join(f"{key}={value}" for key, value in record.tags.items())),
        size_cell(record.size_bytes),
    )


def _name_straggler(record: RunRecord) -> str:
    if record.straggler == "found":
        return name_ranks(record.straggler_ranks)
    return {"none": "none", "inconclusive": "cannot be told"}.get(record.straggler or "", "")


def _show_actions(picked: list[RunRecord]) -> None:
    """What can be done with the ticked runs."""
    with st.container(horizontal=True, vertical_alignment="center"):
        if len(picked) == 2:
            older, newer = sorted(picked, key=lambda record: record.run_id)
            st.button(
                f"Compare {label_text(older.name)} with {label_text(newer.name)}",
                icon=COMPARE.icon,
                type="primary",
                on_click=go_to,
                args=(newer.run_id, COMPARE.slug, {"with": older.run_id}),
            )
        if picked:
            with st.popover(f"Delete {len(picked)}", icon=":material/delete:"):
                st.html(
                    f"<p>Delete {safe(', '.join(record.name for record in picked))} for everyone, for ever?</p>"
                )
                st.button("Delete", key="delete", type="primary", on_click=_delete, args=(picked,))
        else:
            show_notes(["Click a run to open it. Tick runs to compare two of them, or to delete."])


def _delete(picked: list[RunRecord]) -> None:
    for record in picked:
        open_shared_store().delete(record.run_id)
    st.toast(f"Deleted {len(picked)} run{'s' if len(picked) > 1 else ''}.")


def _remove(run_id: str) -> None:
    open_shared_store().delete(run_id)


def _open_clicked(run_ids: list[str]) -> None:
    cells = st.session_state["runs"].selection.cells
    if cells and cells[0][0] < len(run_ids):
        go_to(run_ids[cells[0][0]], OVERVIEW.slug)


def _show_pending(pending: list[RunStatus]) -> None:
    """The visitor's own uploads that are not in the store yet; of others' only how many there are."""
    own = set(own_uploads())
    others = sum(status.run_id not in own and status.state != "failed" for status in pending)
    if others:
        show_notes([f"{others:,} other upload{'s are' if others > 1 else ' is'} on the way."])
    for status in pending:
        if status.run_id in own:
            _show_own(status)


def _show_own(status: RunStatus) -> None:
    has_failed = status.state == "failed"
    message = f"<p>{safe(status.message)}</p>" if status.message else ""
    tone = "error" if has_failed else "info"
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        st.html(
            f'<div class="rs-finding"><span class="rs-badge rs-{tone}">{status.state}</span>'
            f'<span class="rs-place">{safe(status.name)}</span>{message}</div>'
        )
        st.button("Look", key=f"look-{status.run_id}", on_click=_open_run, args=(status.run_id,))
        if has_failed:
            st.button("Remove", key=f"remove-{status.run_id}", on_click=_remove, args=(status.run_id,))


def _show_trend(records: list[RunRecord]) -> None:
    figures = build_trend(records)
    if not figures:
        return
    show_heading(
        "From run to run",
        "The runs found above in order of time. Search for one branch or model, so that like is compared with like.",
    )
    for column, (name, figure) in zip(st.columns(len(figures)), figures.items(), strict=True):
        with column:
            show_figure(figure, key=f"trend-{name}", alt=f"{name} over runs")
