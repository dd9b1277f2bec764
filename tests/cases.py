"""One test for many cases of real data, which is one line where they are not there. All that fail are named."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def each(check: Callable[..., object], cases: Iterable[tuple[object, ...]]) -> None:
    """Call ``check`` with every case; fails with each case that failed and what was wrong with it."""
    failed, tried = [], 0
    for case in cases:
        tried += 1
        try:
            check(*case)
        except AssertionError as error:
            failed.append(f"{', '.join(map(str, case))}: {error}")
        except Exception as error:
            error.add_note(f"in the case {', '.join(map(str, case))}")
            raise
    assert tried, "no case was tried"
    assert not failed, f"{len(failed)} of {tried} cases failed:\n" + "\n".join(failed)
