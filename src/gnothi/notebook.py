"""Results as tables of HTML: what a notebook shows of an object that has ``_repr_html_``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape


def table(rows: Iterable[Sequence[object]], headings: Sequence[str] = ()) -> str:
    """Cells as text, escaped; a list is a line each, and None a dash."""
    head = "".join(f"<th>{escape(one)}</th>" for one in headings)
    body = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table>{f'<thead><tr>{head}</tr></thead>' if head else ''}<tbody>{body}</tbody></table>"


def listing(rows: Mapping[str, object]) -> str:
    """A row for everything that there is to tell."""
    return table((key, value) for key, value in rows.items() if value is not None and value not in ("", (), []))


def _text(value: object) -> str:
    if isinstance(value, list | tuple):
        return "<br>".join(map(_text, value))
    return escape("-" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value))
