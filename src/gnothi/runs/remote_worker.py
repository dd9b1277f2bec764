"""The near end of a worker: questions are sent on, several in a message, and answers find whoever asked."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gnothi.runs.host import Answered, Assignment, WorkerInfo
from gnothi.types import Question


class Lost(Exception):
    """A worker is gone; the message says how."""


class Place(ABC):
    """One worker, used by one event loop. ``lost``: how it went, once it is gone."""

    def __init__(self) -> None:
        self.lost: Lost | None = None
        self.left = 0
        """How many questions it went with."""
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._outbox: list[Assignment] = []
        self._asked = 0

    @abstractmethod
    async def open(self) -> WorkerInfo:
        """Wait until it is open. Raises Lost, and what opening raises."""

    @abstractmethod
    async def close(self) -> None:
        """Have it close what it has open, and wait for that."""

    @abstractmethod
    async def end(self) -> None:
        """End it at once, and whatever else belongs to it."""

    @property
    def busy(self) -> int:
        """Questions under way there."""
        return len(self._waiting)

    async def ask(self, name: str, question: Question) -> Any:
        """What came of it. Raises Lost."""
        if self.lost:
            raise self.lost
        self._asked += 1
        number = self._asked
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        if not self._outbox:  # whoever else asks in this turn of the loop joins the same message
            asyncio.get_running_loop().call_soon(self._post)
        self._outbox.append((number, name, question))
        try:
            return await answer
        finally:
            self._waiting.pop(number, None)

    @abstractmethod
    def _send(self, assignments: Sequence[Assignment]) -> None:
        """Send a message. Where that cannot be, the worker is lost, or about to be."""

    def _post(self) -> None:
        if self._outbox and not self.lost:
            assignments, self._outbox = self._outbox, []
            self._send(assignments)

    def _arrived(self, answered: Iterable[Answered]) -> None:
        for number, result in answered:
            self._tell(number, result)

    def _gone(self, why: str) -> None:
        """Nothing more will come from there."""
        if self.lost is None:
            self.lost, self.left = Lost(why), self.busy
            self._failed(self.lost)

    def _failed(self, error: Exception) -> None:
        for number in list(self._waiting):
            self._tell(number, error)

    def _tell(self, number: int, result: Any) -> None:
        answer = self._waiting.pop(number, None)
        if answer is None or answer.done():
            return
        if isinstance(result, BaseException):
            answer.set_exception(result)
        else:
            answer.set_result(result)


@dataclass(frozen=True, slots=True)
class Kind:
    """Where workers are, and the words for them."""

    make: Callable[[int], Place]
    """Starts one; the number tells it from the others."""
    one: str
    several: str
    relief: str
    """What to do where their memory runs out."""
    together: bool
    """Whether work begins when all are open, or with the first."""
