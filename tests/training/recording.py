"""What a training says while it goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gnothi.session.watch import Watch


class RecordingWatch(Watch):
    """Keeps the lines of the metrics, the messages and the warnings."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.warnings: list[str] = []
        self.messages: list[str] = []

    def line(self, figures: Mapping[str, Any]) -> None:
        self.lines.append(dict(figures))

    def info(self, message: str) -> None:
        self.messages.append(message)

    def warn(self, message: str) -> None:
        self.warnings.append(message)


def recorded(train: Callable[..., dict[str, Any]], *arguments: object) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The header of a training, and the lines of its metrics."""
    watch = RecordingWatch()
    return train(*arguments, watch=watch), watch.lines
