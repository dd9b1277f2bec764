"""What a training says while it goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gnothi.session.watch import Watch


class Heard(Watch):
    """Keeps the lines of the metrics, and what is warned of."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.warnings: list[str] = []
        self.told: list[str] = []

    def line(self, figures: Mapping[str, Any]) -> None:
        self.lines.append(dict(figures))

    def tell(self, message: str) -> None:
        self.told.append(message)

    def warn(self, message: str) -> None:
        self.warnings.append(message)
