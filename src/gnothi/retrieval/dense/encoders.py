"""Passages and questions as vectors: by one sentence-transformers model, or by a pair of encoders as DPR has it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gnothi.errors import MissingDependency, ModelUnavailable
from gnothi.files import home_expanded
from gnothi.libraries import check_found, reason, reports, sleeping_threads
from gnothi.registry import Registry
from gnothi.retrieval.rerank import quiet
from gnothi.retrieval.scripts import normal
from gnothi.retrieval.wrappers import titled_text
from gnothi.schemes import Scheme, as_scheme, split
from gnothi.types import Passage
from gnothi.weights import digest, files_of, version_of

# Checkpoints as DPR's authors published them (Karpukhin et al., 2020), which sentence-transformers pools otherwise.

TOKENS = 256  # the authors' sequence length


def architecture(name: str) -> str:
    """``DPRContextEncoder`` or ``DPRQuestionEncoder``; empty for a model that is neither, or cannot be read."""
    file: str | Path | None = Path(name) / "config.json"
    with suppress(ImportError, OSError, ValueError, LookupError):
        if not Path(name).is_dir():
            from transformers.utils import hub

            library: Any = hub
            file = library.cached_file(name, "config.json")
        model_class = str(json.loads(Path(file or "").read_bytes())["architectures"][0])
        return model_class if model_class in ("DPRContextEncoder", "DPRQuestionEncoder") else ""
    return ""


class DprModel:
    """The vector is that of the first token. Takes what ``encoders.Model`` takes; vectors are never cut to length 1."""

    def __init__(self, name: str, architecture: str) -> None:
        import torch
        import transformers

        library: Any = transformers
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._model: Any = getattr(library, architecture).from_pretrained(name, trust_remote_code=False).eval().to(self._device)
        self._tokenizer: Any = library.AutoTokenizer.from_pretrained(name, trust_remote_code=False)

    def __call__(self, texts: Sequence[Any], role: str, prompt: str | None, unit: bool) -> NDArray[np.float32]:  # noqa: ARG002
        import torch

        pairs = [text if isinstance(text, tuple) else ((prompt or "") + text,) for text in texts]
        # Those of like length together, which wastes little on padding.
        order = sorted(range(len(pairs)), key=lambda place: -sum(map(len, pairs[place])))
        rows: dict[int, NDArray[np.float32]] = {}
        for start in range(0, len(order), _BATCH):
            places = order[start : start + _BATCH]
            columns = (list(column) for column in zip(*(pairs[place] for place in places), strict=True))
            read = self._tokenizer(*columns, padding=True, truncation=True, max_length=TOKENS, return_tensors="pt")
            with torch.inference_mode():
                vectors = self._model(**read.to(self._device)).pooler_output
            rows |= zip(places, vectors.float().cpu().numpy(), strict=True)
        return np.stack([rows[place] for place in range(len(pairs))])


Vectors = NDArray[np.float32]
EncodePassages = Callable[[Sequence[Passage]], Vectors]
"""Shape (passages, dimension), float32."""
EncodeQuestions = Callable[[Sequence[str]], Vectors]
"""Shape (questions, dimension), float32."""

_BATCH = 32
_UNNEEDED = r"(^|\.)pooler\."
"""Weights that no vector is made with."""
EXPECTED = (
    "a folder saved by sentence-transformers, the id of such a model on the hub that is cached or can be downloaded, or an "
    "encoder behind an API, as openai:NAME."
)


@dataclass(frozen=True, slots=True)
class Encoding:
    """What vectors are made by. A score is the inner product of the two vectors.

    Without a ``question_encoder`` the ``encoder`` reads both, with the prompts that it was saved with unless others are given,
    a passage as ``title: text``; vectors have length 1, unless the model says that it is for inner products. Texts are read in
    their normal form (``scripts.normal``).
    With one it is as in DPR (Karpukhin et al., 2020, section 3.1): a passage is the pair of title and text, vectors have the
    length they have.
    """

    encoder: str
    question_encoder: str = ""
    question_prompt: str | None = None
    passage_prompt: str | None = None

    def __str__(self) -> str:
        parts = [self.encoder]
        parts += [f"question encoder {self.question_encoder}"] if self.question_encoder else []
        parts += [
            f"{whose} prompt {prompt!r}"
            for whose, prompt in (("question", self.question_prompt), ("passage", self.passage_prompt))
            if prompt is not None
        ]
        return ", ".join(parts)

    def fingerprint(self) -> str:
        """What changes with the weights; empty where they are not on this machine."""
        prints = [_fingerprint(name) for name in (self.encoder, self.question_encoder) if name]
        return "+".join(prints) if all(prints) else ""

    def passages(self) -> EncodePassages:
        """Raises ModelUnavailable, or MissingDependency without sentence-transformers."""
        model = _load(self.encoder)
        if self.question_encoder:
            return lambda passages: model(
                [(normal(one.title), normal(one.text)) for one in passages], "document", self.passage_prompt, False
            )
        return lambda passages: model([normal(titled_text(one)) for one in passages], "document", self.passage_prompt, True)

    def questions(self) -> EncodeQuestions:
        """Raises as ``passages``."""
        model = _load(self.question_encoder or self.encoder)
        unit = not self.question_encoder
        return lambda questions: model([normal(one) for one in questions], "query", self.question_prompt, unit)


def stored_name(name: str) -> str:
    """What an encoder is noted as: the whole path of a folder, for an index is used from elsewhere; else as given."""
    path = home_expanded(name)
    return str(path.resolve()) if path.is_dir() else name


class Encoder(Protocol):
    def __call__(self, texts: Sequence[Any], role: str, prompt: str | None, unit: bool) -> Vectors:
        """``role`` is query or document; ``prompt`` None: what the model was saved with; ``unit``: of length 1 where that is
        how the model compares."""
        ...


class _SentenceModel:
    def __init__(self, name: str) -> None:
        self._model = load_sentence_model(name)

    def __call__(self, texts: Sequence[Any], role: str, prompt: str | None, unit: bool) -> Vectors:
        encode = self._model.encode_query if role == "query" else self._model.encode_document
        vectors = encode(
            list(texts),
            prompt=prompt,
            batch_size=_BATCH,
            convert_to_numpy=True,
            show_progress_bar=False,
            normalize_embeddings=unit and self._model.similarity_fn_name == "cosine",
        )
        return np.asarray(vectors, np.float32)


def load_sentence_model(name: str, expected: str = EXPECTED) -> Any:
    """The SentenceTransformer in a folder or on the hub; ``expected`` is what messages say there should be.

    Raises MissingDependency, or ModelUnavailable for one that cannot be read."""
    path = home_expanded(name)
    elsewhere = name.startswith((".", "/", "~", "\\")) or name.count("/") > 1 or not name.isprintable()
    if not path.is_dir() and (path.exists() or elsewhere):
        raise ModelUnavailable(f"cannot load the encoder: got {name!r}, which is no folder. Expected {expected}")
    try:
        with sleeping_threads():
            from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise MissingDependency("sentence-transformers", "dense", f"the encoder {name!r}") from error
    try:
        with quiet(), reports() as messages:
            model = SentenceTransformer(stored_name(name), trust_remote_code=False)
        check_found(messages, _UNNEEDED)
        return model
    except Exception as error:  # the library raises many kinds; to a user they all mean the same
        raise ModelUnavailable(f"cannot load the encoder {name!r}: {reason(error).rstrip('.')}. Expected {expected}") from error


ENCODERS: Registry[Scheme[Encoder]] = Registry(
    "encoder",
    "gnothi.encoders",
    also={"openai": "gnothi.models.remote.embeddings:OPENAI", "tei": "gnothi.models.remote.embeddings:TEI"},
)
"""Those that are no sentence-transformers model: by SCHEME:ARGUMENT."""


def named_encoder(name: str) -> Encoder | None:
    """The encoder of a SCHEME:ARGUMENT; None for a folder or a hub id. Raises UnknownName for a scheme that does not exist, and
    what opening raises."""
    scheme, argument = split(ENCODERS, name)
    return as_scheme(ENCODERS.find(scheme)).open(argument) if scheme else None


def _load(name: str) -> Encoder:
    if (named := named_encoder(name)) is not None:
        return named
    kind = architecture(stored_name(name))
    if not kind:
        return _SentenceModel(name)
    try:
        with quiet(), reports() as messages:
            model = DprModel(stored_name(name), kind)
        check_found(messages, _UNNEEDED)
        return model
    except Exception as error:  # the library raises many kinds; to a user they all mean the same
        raise ModelUnavailable(f"cannot load the encoder {name!r}: {reason(error).rstrip('.')}. Expected {EXPECTED}") from error


def _fingerprint(name: str) -> str:
    scheme, argument = split(ENCODERS, name)
    if scheme:
        return as_scheme(ENCODERS.find(scheme)).fingerprint(argument)
    folder = home_expanded(name)
    if not folder.is_dir():
        return version_of(name)
    # How vectors are pooled and prompted stands in folders and files of the library's own.
    return digest(chain(files_of(folder), folder.glob("*/*"), [folder / "modules.json", *folder.glob("config_*.json")]))
