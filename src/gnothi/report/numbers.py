"""Numbers as people read them, on terminals and on pages alike. What was not measured is a dash."""

from __future__ import annotations

from gnothi.stats.intervals import Interval

MISSING = "-"
SIGNIFICANT = 0.05


def share(value: float | None) -> str:
    """Three digits, no zero before the point."""
    return MISSING if value is None else f"{value:.3f}".removeprefix("0")


def interval(value: Interval | None, sign: bool = False) -> str:
    """In brackets; with ``sign`` for a difference. Empty without an interval."""
    if value is None:
        return ""
    low, high = (signed(bound) if sign else f"{bound:.3f}" for bound in value)
    return f"[{low}, {high}]"


def between(value: Interval | None) -> str:
    """An interval in few columns."""
    bounds = [f"{bound:.{_digits(bound)}f}" for bound in value or ()]
    return "-".join(bounds).replace("0.", ".").replace("1.00", "1.0")


def signed(value: float, digits: int = 3) -> str:
    """With its sign, a true minus, and no zero before the point; nothing has no sign."""
    text = f"{value:+.{digits}f}"
    text = text[0] + text[1:].removeprefix("0")
    return text[1:] if float(text) == 0 else text.replace("-", "−")


def percent(value: float | None) -> str:
    """With a true minus."""
    if value is None:
        return MISSING
    digits = _digits(value)
    return f"{round(value, digits) + 0.0:.{digits - 2}%}".replace("-", "−")  # adding 0 turns -0 into 0


def _digits(value: float) -> int:
    """Two, or more where a share that is neither nothing nor all would read as such; six at most."""
    inside = 0 < round(value, 6) < 1
    return next(digits for digits in range(2, 7) if not inside or round(value, digits) not in (0, 1))


def number(value: float | None) -> str:
    """Counts and means of any size; whole from 100 on."""
    if value is None:
        return MISSING
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def thousands(value: float | None) -> str:
    """In few columns."""
    return MISSING if value is None else f"{value / 1000:.1f}k" if value >= 10_000 else f"{value:.0f}"


def money(value: float | None) -> str:
    """Small sums with three significant digits."""
    return MISSING if value is None else f"{value:,.2f}" if value >= 1 else f"{value:.3g}"


def chance(p: float) -> str:
    """A p-value."""
    return f"{p:.0e}".replace("e-0", "e-") if p < 0.001 else f"{p:.2g}"


def metric_name(metric: str) -> str:
    """A metric in words."""
    return {"em": "exact match", "f1": "F1", "contained": "answers that contain a right one"}.get(metric, metric)


def lasting(seconds: float) -> str:
    """A stretch of time, as somebody who waits says it: ``40 s``, ``6 min``, ``2 h 10 min``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
