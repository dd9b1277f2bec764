"""Multiple choice: which of the choices an answer names."""

from __future__ import annotations

from collections.abc import Sequence

from gnothi.methods.steps.parsing import as_choice
from gnothi.metrics.normalise import normalise


def chosen(answer: str, choices: Sequence[str]) -> str:
    """By text or label (``as_choice``), else the only choice whose words occur in the answer, in a row; nothing where none does
    or several do.

    Containment of characters would not do: "work" is in "homework". A choice within another that occurs ("mall" in "strip
    mall") does not count beside it.
    """
    named = as_choice(answer, choices)
    if named in choices:
        return named
    words = _bounded(answer)
    found = {form: choice for choice in choices if (form := _bounded(choice)).strip() and form in words}
    longest = [choice for form, choice in found.items() if not any(form in other for other in found if other != form)]
    return longest[0] if len(longest) == 1 else ""


def _bounded(text: str) -> str:
    return f" {normalise(text)} "
