"""What a training says while it goes on."""

from __future__ import annotations

from collections.abc import Mapping
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
