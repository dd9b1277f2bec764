"""Multiple choice: the shapes in which official files list choices, and the label of the right one."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gnothi.datasets.records import Record

_EXPECTED = (
    'choices as [{"label": "A", "text": ...}, ...], {"label": [...], "text": [...]}, {"A": ..., "B": ...} or '
    '["first", "second"]'
)


@dataclass(frozen=True, slots=True)
class Choices:
    """Labels and texts, in the file's order."""

    labels: tuple[str, ...]
    texts: tuple[str, ...]

    def right(self, record: Record, key: str) -> tuple[str, ...]:
        """The text of the choice whose label stands under ``key``: no gold answer where that is missing, null or empty, as in
        the official files of questions whose answers are kept back."""
        label = record.data.get(key)
        if label is None or label == "":
            return ()
        if isinstance(label, str) and label.strip() in self.labels:
            return (self.texts[self.labels.index(label.strip())],)
        raise record.invalid(f"{key} = {label!r:.60}", f"the label of a choice: {', '.join(self.labels)}")


def read(record: Record, given: Any, key: str) -> Choices:
    """The choices in any of the three shapes; ``key`` names them in complaints."""
    labels: Sequence[Any]
    texts: list[Any] | tuple[Any, ...]
    if isinstance(given, list) and all(isinstance(item, Mapping) and {"label", "text"} <= item.keys() for item in given):
        labels, texts = [item["label"] for item in given], [item["text"] for item in given]
    elif isinstance(given, list) and len(given) <= 26 and all(isinstance(item, str) for item in given):
        labels, texts = string.ascii_uppercase[: len(given)], given
    elif isinstance(given, Mapping) and isinstance(given.get("label"), list) and isinstance(given.get("text"), list):
        labels, texts = given["label"], given["text"]
    elif isinstance(given, Mapping):
        labels, texts = list(given), list(given.values())
    else:
        raise record.invalid(f"{key} = {given!r:.60}", _EXPECTED)
    shaped = len(labels) == len(texts) and all(isinstance(item, str) and item.strip() for item in (*labels, *texts))
    if not shaped:
        raise record.invalid(f"{key} = {given!r:.60}", _EXPECTED)
    found = Choices(tuple(label.strip() for label in labels), tuple(" ".join(text.split()) for text in texts))
    if len(found.labels) < 2 or len(set(found.labels)) < len(found.labels):
        raise record.invalid(f"{key} with the labels {', '.join(found.labels) or '(none)'}", "two or more different labels")
    return found


def stem(record: Record, key: str = "question") -> Mapping[str, Any]:
    """The object of stem and choices that AllenAI's files keep under ``question``."""
    given = record.data.get(key)
    if not isinstance(given, Mapping) or not isinstance(given.get("stem"), str) or not given["stem"].strip():
        raise record.invalid(f"{key} = {given!r:.60}", 'an object with "stem" (text) and "choices"')
    return given


def by_label(answer: str, choices: Sequence[str]) -> str:
    """The choice that a capital letter stands for (A is the first), unless it is a choice itself; else ``answer``."""
    if answer in choices or len(answer) != 1:
        return answer
    position = string.ascii_uppercase.find(answer)
    return choices[position] if 0 <= position < len(choices) else answer
