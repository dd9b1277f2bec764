"""The protocols: what speaks, what is out there (passages, facts), what ranks it, how a question is answered.

They live below every package, so that signals, filters and methods see protocols and never a backend.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar, Protocol, runtime_checkable

from gnothi.types import (
    Answer,
    Attended,
    Capabilities,
    ContinuationScore,
    Decoding,
    Generation,
    Mention,
    Neighbourhood,
    Profile,
    Prompt,
    PromptStates,
    Question,
    Samples,
    ScoredPassage,
    StateSpec,
)

Count = Callable[[Sequence[str]], Awaitable[int]]
"""How many passages of an index hold all of several phrases, each as words beside each other."""


@runtime_checkable
class LanguageModel(Protocol):
    """A language model seen from a method. All calls may run concurrently; the implementation batches them."""

    @property
    def name(self) -> str:
        """What a user calls it: a hub id, a folder, ``lab``, ``openai:NAME``."""
        ...

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def profile(self) -> Profile: ...

    async def generate(self, prompt: Prompt, decoding: Decoding) -> Generation:
        """One continuation of the prompt."""
        ...

    async def sample(self, prompt: Prompt, n: int, decoding: Decoding, hidden: Sequence[StateSpec] = ()) -> Samples:
        """n independent continuations, and the hidden states of them that ``hidden`` asks for."""
        ...

    async def states(self, prompt: Prompt, hidden: Sequence[StateSpec]) -> PromptStates:
        """Hidden states at the prompt's end, those of the position ``predicting``; nothing is generated."""
        ...

    async def score(self, prompt: Prompt, continuations: Sequence[str]) -> tuple[ContinuationScore, ...]:
        """Log-probabilities of each given continuation after the prompt, in order."""
        ...

    async def attend(self, prompt: Prompt, continuation: str) -> Attended:
        """Where a given continuation, read after the prompt, looks, and how unsure each of its tokens was."""
        ...

    async def aclose(self) -> None:
        """Release what the model holds. Idempotent."""
        ...


@runtime_checkable
class Retriever(Protocol):
    """A source of evidence. Calls may run concurrently."""

    @property
    def name(self) -> str: ...

    async def search(self, query: str, k: int) -> tuple[ScoredPassage, ...]:
        """At most k passages, best first; ties broken by passage id; an empty query or no match gives an empty tuple."""
        ...

    async def aclose(self) -> None:
        """Release what the retriever holds. Idempotent."""
        ...


@runtime_checkable
class KnowledgeGraph(Protocol):
    """A source of facts. Calls may run concurrently."""

    @property
    def name(self) -> str: ...

    async def link(self, text: str) -> tuple[Mention, ...]:
        """The nodes that the text names, in order, not overlapping; the longest name wins."""
        ...

    async def neighbourhood(self, nodes: Sequence[str], hops: int, cap: int) -> Neighbourhood:
        """The facts within ``hops`` steps of the nodes, in either direction and each once; at most ``cap`` of each node.

        Nodes that the graph does not hold are left aside."""
        ...

    async def aclose(self) -> None:
        """Release what the graph holds. Idempotent."""
        ...


@runtime_checkable
class Reranker(Protocol):
    """Reads a query and a text together and says how well the text fits. Calls may run concurrently."""

    @property
    def name(self) -> str: ...

    async def score(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        """One finite number for each text, in order; higher fits better. Scales differ between re-rankers."""
        ...

    async def aclose(self) -> None:
        """Release what the re-ranker holds. Idempotent."""
        ...


@runtime_checkable
class Method(Protocol):
    """A way of answering questions: a frozen dataclass, resources first, then the paper's hyper-parameters as fields.

    ``name`` is what ``--method`` takes. ``needs`` is what the model must offer with the present settings.
    """

    name: ClassVar[str]

    @property
    def needs(self) -> Capabilities: ...

    async def __call__(self, question: Question) -> Answer: ...
