"""The protocol every method speaks."""

from __future__ import annotations

from typing import ClassVar, Protocol, runtime_checkable

from gnothi.types import Answer, Capabilities, Question


@runtime_checkable
class Method(Protocol):
    """A way of answering questions: a frozen dataclass, resources first, then the paper's hyper-parameters as fields.

    ``name`` is what ``--method`` takes. ``needs`` is what the model must offer with the present settings.
    """

    name: ClassVar[str]

    @property
    def needs(self) -> Capabilities: ...

    async def __call__(self, question: Question) -> Answer: ...
