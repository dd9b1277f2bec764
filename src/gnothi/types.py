"""Frozen records that cross package boundaries. Nothing here knows a backend, a method or a file format."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn, Self, cast, get_args

import numpy as np
from numpy.typing import NDArray

from gnothi.errors import InvalidInput
from gnothi.notebook import listing

Site = Literal["ffn", "residual"]
Position = Literal["fed_eos", "predicting"]
Finish = Literal["eos", "stop", "length"]


def encodable(text: str, instead: str = "?") -> str:
    """The text with lone surrogates (possible in JSON and on a command line, impossible in UTF-8) replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return re.sub("[\ud800-\udfff]", instead, text)
    return text


_NO_LETTER = "\ufffd"
"""In the place of a lone surrogate of a reply, where a question mark would end a sentence."""


Value = str | int | float | bool
"""One of a passage's metadata."""


class Metadata(dict[str, Value]):
    """What is known of a passage beside its text: flat, in order of the keys, unchangeable and hashable.

    Raises TypeError for a key or a value of another type. A whole number of more than 64 bits is kept as text, and so is a
    number that JSON does not have.
    """

    __slots__ = ("_hash", "_packed")

    def __init__(self, values: Mapping[str, Value] | Iterable[tuple[str, Value]] = ()) -> None:
        super().__init__(sorted(_checked_pair(*pair) for pair in dict(values).items()) if values else ())
        self._hash: int | None = None
        self._packed: str | None = None

    @classmethod
    def unpacked(cls, stored: str | bytes) -> Metadata:
        """The inverse of ``packed``. Raises ValueError or TypeError for what it did not write."""
        raw = json.loads(stored)
        if type(raw) is not dict or not _KINDS.issuperset(map(type, raw.values())):
            raise TypeError("metadata are stored as an object of texts, numbers, true and false")
        return cls._unchecked(raw)

    @classmethod
    def _unchecked(cls, pairs: Mapping[str, Value]) -> Metadata:
        """Of pairs that were checked before, in order of the keys."""
        metadata = cls()
        dict.update(metadata, pairs)
        return metadata

    @property
    def packed(self) -> str:
        """As JSON; made once, since all passages of a file may share theirs."""
        if self._packed is None:
            self._packed = json.dumps(self, ensure_ascii=False, separators=(",", ":"))
        return self._packed

    def filled(self, others: Metadata) -> Metadata:
        """These, with those of ``others`` for keys that are not here."""
        return self._unchecked(dict(sorted({**others, **self}.items()))) if self else others

    def __hash__(self) -> int:  # type: ignore[override]
        if self._hash is None:
            self._hash = hash(tuple(self.items()))
        return self._hash

    def __reduce__(self) -> tuple[type[Self], tuple[dict[str, Value]]]:
        return type(self), (dict(self),)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def _refused(self, *arguments: object, **more: object) -> NoReturn:  # noqa: ARG002 - whatever is asked
        raise TypeError("metadata of a passage cannot be changed: make another passage with dataclasses.replace")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refused


_KINDS = frozenset((str, int, float, bool))


def _checked_pair(key: object, value: object) -> tuple[str, Value]:
    if not isinstance(key, str) or not isinstance(value, Value):
        raise TypeError(f"metadata: got {key!r:.60} = {value!r:.60}, expected a text, a number, True or False under a text")
    if isinstance(value, str):
        return encodable(key), encodable(value)
    fits = -(2**63) <= value < 2**63 if isinstance(value, int) else math.isfinite(value)
    return encodable(key), value if fits else str(value)


NO_METADATA = Metadata()


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of evidence: what a retriever returns and a model reads. ``metadata``: any flat mapping, kept as ``Metadata``."""

    id: str
    text: str
    title: str = ""
    metadata: Mapping[str, Value] = NO_METADATA

    def __post_init__(self) -> None:
        if type(self.metadata) is not Metadata:
            object.__setattr__(self, "metadata", Metadata(self.metadata))

    @property
    def known(self) -> Metadata:
        """Its metadata, as what they are."""
        return cast("Metadata", self.metadata)

    def storable(self) -> Passage:
        """As UTF-8 can hold it; its metadata are already."""
        name, text, title = encodable(self.id), encodable(self.text), encodable(self.title)
        same = (name, text, title) == (self.id, self.text, self.title)
        return self if same else Passage(name, text, title, self.metadata)

    @property
    def change(self) -> tuple[str, ...]:
        """What tells it from another one of the same id."""
        return (self.id, self.title, self.text, *([self.known.packed] if self.metadata else ()))

    @property
    def size(self) -> int:
        """Characters, without those of the metadata."""
        return len(self.id) + len(self.text) + len(self.title)


@dataclass(frozen=True, slots=True)
class ScoredPassage:
    """A passage with the score its retriever gave it; higher is better, scales differ between retrievers."""

    passage: Passage
    score: float


@dataclass(frozen=True, slots=True)
class Fact:
    """A triple of a knowledge graph, and the sentence that says it."""

    head: str
    relation: str
    tail: str
    text: str

    @property
    def passage(self) -> Passage:
        """The fact as evidence; the same triple has the same id."""
        return Passage(f"{self.head}|{self.relation}|{self.tail}", self.text)


@dataclass(frozen=True, slots=True)
class Mention:
    """A place in a text, its characters from ``start`` to before ``end``, that names a node of a knowledge graph."""

    node: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Facts around some nodes, the nearer ones first. ``capped`` are nodes with so many facts that not all were taken."""

    facts: tuple[Fact, ...]
    capped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """A question with what is known about it.

    ``answers`` are acceptable answers (any of them counts as right; empty where there is no gold answer), ``choices``
    the options of a multiple-choice question, ``metadata`` whatever the data set knows beyond that.
    """

    id: str
    text: str
    answers: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    kind: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # What is asked is written to files and read by tokenizers, neither of which takes a lone surrogate.
        object.__setattr__(self, "id", encodable(self.id))
        object.__setattr__(self, "text", encodable(self.text))
        object.__setattr__(self, "answers", tuple(map(encodable, self.answers)))
        object.__setattr__(self, "choices", tuple(map(encodable, self.choices)))


@dataclass(frozen=True, slots=True)
class Demonstration:
    """One worked example of a task, shown to general models before the question."""

    question: str
    answer: str
    passages: tuple[Passage, ...] = ()
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """What a model is asked to do. ``name`` is what a trained format keys on; the rest serves general models.

    ``answer_label`` precedes the model's reply in plain completion ("Answer:"). ``form`` is a whole prompt as a paper prints
    it, in place of instruction and labels: {question} stands for the question, {passages} for the texts before it. It is no
    part of the ``repr``, by which draws are seeded (``gnothi.seeding``).
    """

    name: str
    instruction: str = ""
    demonstrations: tuple[Demonstration, ...] = ()
    answer_label: str = "Answer:"
    form: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt as data; the model's renderer turns it into text.

    ``answer_so_far`` is the part of the reply that already stands: the model continues it.
    """

    task: Task
    question: str
    passages: tuple[Passage, ...] = ()
    choices: tuple[str, ...] = ()
    answer_so_far: str = ""


@dataclass(frozen=True, slots=True)
class Decoding:
    """How to continue a prompt. ``temperature`` 0 is greedy; ``top_k`` 0 and ``top_p`` 1 switch the cuts off.

    Top-k is applied before top-p. ``stop`` strings end the text and are not part of it. ``seed`` None leaves the choice
    to the wrapper that derives it from run seed, question and request. ``first`` is the number of the first of the samples that
    are wanted: 4 to 8 drawn under a seed are those among 0 to 20 where the backend makes that possible. It is no part of the
    ``repr``, by which draws are seeded (``gnothi.seeding``).
    """

    max_tokens: int = 100
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    stop: tuple[str, ...] = ()
    seed: int | None = None
    first: int = field(default=0, repr=False)


@dataclass(frozen=True, slots=True)
class StateSpec:
    """Which hidden state of a sampled continuation is wanted (SeaKR, section 3.1).

    ``layer`` counts decoder layers from 0; None is the middle one, ``num_layers // 2 - 1`` (15 of 32, as in SeaKR's code); a
    number between 0 and 1 is the layer that ends this share of them (0.25: 7 of 32).
    ``site``: ``ffn`` is the output of the feed-forward block before the residual is added, ``residual`` the layer's output.
    ``position``: ``fed_eos`` replaces the token that ended the continuation (end of sequence, the one that completed a stop
    string, or the last one at the length limit) by the end-of-sequence token, feeds it and takes its state, as SeaKR's code
    does; ``predicting`` takes that of the position which predicted it.
    """

    layer: int | float | None = None
    site: Site = "ffn"
    position: Position = "fed_eos"

    def __post_init__(self) -> None:
        for name, known in (("site", get_args(Site)), ("position", get_args(Position))):
            if getattr(self, name) not in known:
                raise InvalidInput(f"{name} of a state: got {getattr(self, name)!r}, expected {' or '.join(known)}.")


@dataclass(frozen=True, slots=True)
class Token:
    """A generated token. ``logprob`` is the natural logarithm of its probability at temperature 1, without cuts.

    ``logsumexp`` is that of the raw logits at the position (the negative of the energy), None where the backend cannot tell.
    ``id`` is the token's number in the model's vocabulary, None where the backend does not say.
    """

    text: str
    logprob: float
    logsumexp: float | None = None
    id: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", encodable(self.text, _NO_LETTER))


@dataclass(frozen=True, slots=True)
class Generation:
    """One continuation. ``tokens`` is empty where the backend gives text only. A stop string ends ``text`` and is not in it;
    the tokens are those whose text makes up ``text`` (the one that completed the stop string may be cut off).

    ``thought`` is what a model that thinks said to itself before: no part of ``text`` nor of ``tokens``. ``generated_tokens``
    counts it, and ``thought_tokens`` says how many of them were thought. ``thought_cut``: the thought was ended at the limit of
    its length, not by the model."""

    text: str
    tokens: tuple[Token, ...] = ()
    finish: Finish = "eos"
    prompt_tokens: int = 0
    generated_tokens: int = 0
    thought: str = ""
    thought_tokens: int = 0
    thought_cut: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", encodable(self.text, _NO_LETTER))
        object.__setattr__(self, "thought", encodable(self.thought, _NO_LETTER))

    @property
    def logprob(self) -> float:
        """Sum of the tokens' log-probabilities (natural logarithm)."""
        return sum(token.logprob for token in self.tokens)


@dataclass(frozen=True, slots=True)
class Samples:
    """n sampled continuations of one prompt. ``states`` holds an array for each hidden state that was asked for, in that order:
    shape (n, hidden size), float32, row i for generation i."""

    generations: tuple[Generation, ...]
    states: tuple[NDArray[np.float32], ...] = ()


@dataclass(frozen=True, slots=True)
class PromptStates:
    """What a model made of a prompt before it says anything: the hidden states at the prompt's last token, which predicts the
    reply's first. ``states`` holds an array for each that was asked for, in that order: shape (hidden size,), float32."""

    states: tuple[NDArray[np.float32], ...]
    prompt_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ContinuationScore:
    """Log-probabilities (natural logarithm) of the tokens of one given continuation."""

    text: str
    logprobs: tuple[float, ...]
    prompt_tokens: int = 0

    @property
    def logprob(self) -> float:
        return sum(self.logprobs)

    @property
    def mean_logprob(self) -> float:
        """Length-normalised log-probability; 0 for an empty continuation."""
        return self.logprob / len(self.logprobs) if self.logprobs else 0.0


@dataclass(frozen=True, slots=True)
class Attended:
    """How a model read a prompt with a given continuation: n tokens, of which the last m are the continuation's.

    ``tokens`` are their texts, which add up to what was read. ``entropies``, shape (m,), in nats, are those of the predictions
    of the continuation's tokens; ``attention``, shape (m, n), is where each of them looked in the last layer, averaged over its
    heads: rows add up to 1, and nothing looks ahead.
    """

    tokens: tuple[str, ...]
    entropies: NDArray[np.float32]
    attention: NDArray[np.float32]

    @property
    def prompt_tokens(self) -> int:
        return len(self.tokens) - len(self.entropies)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a model can do beyond text. As a method's needs: what it cannot run without."""

    logprobs: bool = False
    hidden_states: bool = False
    scoring: bool = False
    energy: bool = False
    attentions: bool = False

    def lacking(self, needs: Capabilities) -> tuple[str, ...]:
        """Names of what ``needs`` asks for and this does not offer."""
        return tuple(name for name in self.__slots__ if getattr(needs, name) and not getattr(self, name))

    def __or__(self, other: Capabilities) -> Capabilities:
        return Capabilities(*(getattr(self, name) or getattr(other, name) for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class Profile:
    """What is known of a model beside what it can do. Whoever does not know leaves the default.

    ``thresholds``: signal name → the threshold calibrated on this model; none carries over from one model to another (methods
    fall back on the signal's usual one). ``tasks``: names of the only tasks that a model with a format of its own was taught;
    None: any that an instruction explains. ``parameters``: about how many weights it has. ``layers``: how many decoder layers.
    ``precision``: that of its weights, as in ``bfloat16``. ``added_tokens``: those that its makers added to the vocabulary.
    ``date``: the day that its prompts take for today, as in 2026-11-27; empty where they tell none. ``lacks``: name of a
    capability that it does not have → why.
    """

    thresholds: Mapping[str, float] = field(default_factory=dict)
    tasks: frozenset[str] | None = None
    parameters: int | None = None
    layers: int | None = None
    precision: str | None = None
    added_tokens: frozenset[str] | None = None
    date: str = ""
    lacks: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a method returns. ``rationale`` is the reasoning that led to ``text``, ``evidence`` the passages that were kept.

    ``uncertainty`` ranks answers by trust (higher is less certain); None where the method has no such number.
    """

    text: str
    rationale: str = ""
    evidence: tuple[Passage, ...] = ()
    uncertainty: float | None = None

    def summary(self) -> dict[str, object]:
        """For a person to read, by name."""
        evidence = [f"{one.title}: {one.text}" if one.title else one.text for one in self.evidence]
        return {"answer": self.text, "because": self.rationale, "uncertainty": self.uncertainty, "evidence": evidence}

    def _repr_html_(self) -> str:
        return listing(self.summary())
