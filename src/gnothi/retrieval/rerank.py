"""Re-ranking by a cross-encoder, which reads a query and a text together (IEKR, Du and Zhao 2024, section 4.2).

Any model works that sentence-transformers' CrossEncoder takes: a classifier over the pair, or a causal language model whose
score is the logit of one token less that of another.
"""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gnothi.concurrency import Batcher, in_batches
from gnothi.errors import MissingDependency, ModelUnavailable
from gnothi.files import home_expanded
from gnothi.libraries import cache_argument, check_found, reason, reports, sleeping_threads
from gnothi.protocols import Reranker
from gnothi.schemes import Scheme
from gnothi.weights import digest, files_of, version_of

# One query and many texts with a causal cross-encoder: what all pairs begin with, the query above all, is read once. A causal
# model's state after a prefix does not depend on what follows, so the scores are those of reading every pair in full, up to
# rounding; the work is that of the texts alone. Gradients pass through, so that training profits, too.

Row = list[int]
_WORTH = 8
"""Tokens in common that are worth a pass of their own."""


class CommonPrefix:
    """Scores pairs with the given CrossEncoder; at most ``batch_tokens`` tokens are in memory at a time."""

    def __init__(self, model: Any, batch_tokens: int) -> None:
        self._model = model
        self._transformer, self._logit_score = model[0].model, model[1]
        self._batch_tokens = batch_tokens
        self._cache_argument = cache_argument(self._transformer) or "past_key_values"

    @staticmethod
    def serves(model: Any) -> bool:
        """Whether the model is a causal language model scored by a logit whose layers all attend to everything before."""
        modules = [type(module).__name__ for module in model]
        config = model[0].model.config if modules else None
        kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
        sliding = getattr(config, "sliding_window", None) and getattr(config, "use_sliding_window", True)
        return modules == ["Transformer", "LogitScore"] and kinds == {"full_attention"} and not sliding

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """The score of each text, in order, without gradients."""
        import torch

        rows = self._rows(query, texts)
        common = shared(rows) if len(rows) > 1 else 0
        common = common if common >= _WORTH else 0
        order = sorted(range(len(rows)), key=lambda place: -len(rows[place]))
        scores = [0.0] * len(rows)
        with torch.inference_mode():
            cache = self._read([rows[0][:common]]) if common else None
            while order:
                count = max(1, self._batch_tokens // len(rows[order[0]]))
                batch, order = order[:count], order[count:]
                again = copy.deepcopy(cache)
                if again is not None:
                    again.batch_repeat_interleave(len(batch))
                values = self._go_on([rows[place][common:] for place in batch], [common] * len(batch), again)
                for place, score in zip(batch, values.tolist(), strict=True):
                    scores[place] = score
        return scores

    def logits(self, queries: Sequence[tuple[str, Sequence[str]]]) -> Any:
        """The scores of all texts of all queries, in order, shape (texts,), with gradients; the same number of texts each."""
        groups = [self._rows(query, texts) for query, texts in queries]
        common = [shared(rows) for rows in groups]
        if min(common) == 0:
            return self._go_on([row for rows in groups for row in rows], [0] * sum(map(len, groups)), None)
        cache = self._read([rows[0][:length] for rows, length in zip(groups, common, strict=True)])
        cache.batch_repeat_interleave(len(groups[0]))
        rest = [row[length:] for rows, length in zip(groups, common, strict=True) for row in rows]
        return self._go_on(rest, [length for rows, length in zip(groups, common, strict=True) for _ in rows], cache)

    def _rows(self, query: str, texts: Sequence[str]) -> list[Row]:
        features = self._model.preprocess([(query, text) for text in texts])
        return [ids[mask.bool()].tolist() for ids, mask in zip(features["input_ids"], features["attention_mask"], strict=True)]

    def _read(self, prefixes: Sequence[Row]) -> Any:
        from transformers import DynamicCache

        ids, mask = self._padded(prefixes)
        cache = DynamicCache(config=self._transformer.config)
        options = {self._cache_argument: cache}
        places = _places(mask)
        self._transformer(input_ids=ids, attention_mask=mask, position_ids=places, use_cache=True, logits_to_keep=1, **options)
        return cache

    def _go_on(self, rows: Sequence[Row], common: Sequence[int], cache: Any) -> Any:
        """Scores of rows that follow prefixes of ``common`` tokens, which stand in ``cache``, shape (rows,)."""
        import torch

        ids, mask = self._padded(rows)
        width = ids.shape[1]
        before = max(common)
        if before:
            stands = torch.arange(before, device=mask.device) >= before - torch.tensor(common, device=mask.device)[:, None]
            mask = torch.cat([stands.long(), mask], dim=1)
        logits = self._transformer(
            input_ids=ids,
            attention_mask=mask,
            position_ids=_places(mask)[:, -width:],
            use_cache=cache is not None,
            logits_to_keep=1,
            **({} if cache is None else {self._cache_argument: cache}),
        ).logits
        return self._logit_score({self._logit_score.module_input_name: logits})["scores"].squeeze(1).float()

    def _padded(self, rows: Sequence[Row]) -> tuple[Any, Any]:
        """Tokens and mask, padded on the left, as the library does: the last position is a token everywhere."""
        import torch

        width = max(map(len, rows))
        ids = torch.zeros(len(rows), width, dtype=torch.long)
        mask = torch.zeros(len(rows), width, dtype=torch.long)
        for number, row in enumerate(rows):
            ids[number, width - len(row) :] = torch.tensor(row)
            mask[number, width - len(row) :] = 1
        return ids.to(self._model.device), mask.to(self._model.device)


def _places(mask: Any) -> Any:
    return (mask.cumsum(1) - 1).clamp(min=0)


def shared(rows: Sequence[Row]) -> int:
    """How many tokens all rows begin with, leaving one of each."""
    low, high = min(rows), max(rows)
    same = next((place for place, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))
    return max(0, min(same, min(map(len, rows)) - 1))


LAB = "lab"
LAB_FOLDER = Path(__file__).parent.parent / "lab" / "reranker"
LIMIT = 1024
"""Tokens of a pair, at most, where the model itself takes more: self-attention over more is slow, and facts are short."""

Pair = tuple[str, str]
Request = tuple[str, tuple[str, ...]]

_BATCH_TOKENS = 16_384
_NEW, _NONE = r"(^|\.)(\w*classifier|classification_head|score|head|pooler)\.", r"$^"
"""Weights of a classifier that is yet to be trained, and of one that is trained."""
_EXPECTED = (
    "Expected 'lab', a folder saved by sentence-transformers' CrossEncoder (`gnothi train reranker` makes one), or the id of a "
    "cross-encoder on the hub that is cached or can be downloaded."
)


class CrossEncoderReranker:
    """A cross-encoder on a thread of its own; all pairs that wait are scored together, those of like length in one batch.

    A score is the model's raw output for the pair (what ``CrossEncoder.predict`` gives without an activation). A pair has at
    most ``limit`` tokens. A longer query, such as one with much internal knowledge, is shortened (``fitted``) to keep at least
    a quarter of them for the text: so a fact always survives whole, and how much of a query is read depends on nothing but the
    query. A text longer than what is left loses its end, too.
    """

    def __init__(self, model: Any, name: str, limit: int | None = None) -> None:
        """``model`` is a CrossEncoder with one output; ``limit`` None is the model's own limit, at most 1,024 tokens."""
        self._model = model
        self._name = name
        self._limit = min(limit or LIMIT, model.max_seq_length or LIMIT)
        model.max_seq_length = self._limit
        self._prefix: CommonPrefix | None = None
        self._extra: int | None = None
        self._batcher: Batcher[Request, tuple[float, ...]] = Batcher(in_batches(self._answer), "reranker")

    @classmethod
    def open(cls, spec: str, limit: int | None = None) -> CrossEncoderReranker:
        """Raises ModelUnavailable, or MissingDependency without sentence-transformers."""
        return cls(load_cross_encoder(str(LAB_FOLDER) if spec == LAB else spec, spec), spec, limit)

    @property
    def name(self) -> str:
        return self._name

    async def score(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        if not texts:
            return ()
        return await self._batcher.submit((query, tuple(texts)))

    def score_blocking(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        """``score`` on the caller's thread, for callers without an event loop; not to be mixed with it."""
        (outcome,) = self._answer([(query, tuple(texts))])
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def aclose(self) -> None:
        await self._batcher.aclose()

    # On the thread

    def _answer(self, requests: Sequence[Request]) -> list[tuple[float, ...] | Exception]:
        requests = [(self.fitted(query), texts) for query, texts in requests]
        unique = dict.fromkeys(requests)  # rows of a study ask the same at the same time
        if self._prefix is None and CommonPrefix.serves(self._model):
            self._prefix = CommonPrefix(self._model, _BATCH_TOKENS)
        if self._prefix is not None:
            scores = [score for query, texts in unique for score in self._prefix.scores(query, texts)]
        else:
            scores = self._scores([(query, text) for query, texts in unique for text in texts])
        rest = iter(scores)
        outcomes = {one: _finite(self._name, tuple(next(rest) for _ in one[1])) for one in unique}
        return [outcomes[one] for one in requests]

    def _scores(self, pairs: Sequence[Pair]) -> list[float]:
        """In batches of like length, which waste little on padding."""
        from torch.nn import Identity

        order = sorted(range(len(pairs)), key=lambda place: -len(pairs[place][0]) - len(pairs[place][1]))
        scores = [0.0] * len(pairs)
        while order:
            longest = pairs[order[0]]
            tokens = min(self._limit, self._tokens(longest[0]) + self._tokens(longest[1]) + 3)
            batch, order = order[: max(1, _BATCH_TOKENS // tokens)], order[max(1, _BATCH_TOKENS // tokens) :]
            values = self._model.predict(
                [pairs[place] for place in batch],
                batch_size=len(batch),
                activation_fn=Identity(),
                show_progress_bar=False,
            )
            for place, score in zip(batch, values.tolist(), strict=True):
                scores[place] = score
        return scores

    def _tokens(self, text: str) -> int:
        return len(self._model.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    def fitted(self, query: str) -> str:
        """What is read of a query: all of it, in one line, or what leaves a quarter of the limit to the text. Of a query in
        lines the first, which asks, then loses its beginning and the others their ends, so that neither side takes more than
        half of the room where the other needs it; of one in a single line the end is lost."""
        if self._extra is None:  # what every pair has beside the two: special tokens, a template
            features = self._model.preprocess([("a", "a")])
            self._extra = int(features["attention_mask"].sum()) - 2 * self._tokens("a")
        room = max(1, self._limit - self._limit // 4 - self._extra)
        # A token has a character at least; without places of tokens in the text the library's truncation has to do.
        if len(query) <= room or not self._model.tokenizer.is_fast:
            return _in_a_line(query)
        first, *others = [(line, self._places(line)) for line in query.split("\n")]
        if not others:
            return _cut(*first, room)
        sizes = [len(places) for _, places in others]
        for_query, rest = shares([len(first[1]), sum(sizes)], room)
        lines = [_cut(*one, size) for one, size in zip(others, shares(sizes, rest), strict=True)]
        return _in_a_line("\n".join((_cut(*first, -for_query), *lines)))

    def _places(self, text: str) -> list[tuple[int, int]]:
        """Beginning and end of each token."""
        encoded = self._model.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        return list(encoded["offset_mapping"])


def shares(sizes: Sequence[int], room: int) -> list[int]:
    """How much of ``room`` each gets: what it asks for where all can, else equal parts, of which none is left unused."""
    remaining, parts = room, [0] * len(sizes)
    for done, place in enumerate(sorted(range(len(sizes)), key=sizes.__getitem__)):
        parts[place] = min(sizes[place], remaining // (len(sizes) - done))
        remaining -= parts[place]
    return parts


def _cut(text: str, places: Sequence[tuple[int, int]], tokens: int) -> str:
    """The first ``tokens`` of it, or below zero the last."""
    if len(places) <= abs(tokens) or not places:
        return text
    if tokens == 0:
        return ""
    return text[: places[tokens - 1][1]] if tokens > 0 else text[places[tokens][0] :]


def _in_a_line(text: str) -> str:
    return " ".join(line for line in text.split("\n") if line)


def load_cross_encoder(source: str, name: str, untrained: bool = False) -> Any:
    """The CrossEncoder in a folder or on the hub, with one output. ``untrained``: a model without a classifier gets a new one.

    Raises MissingDependency without sentence-transformers, ModelUnavailable for what cannot be read or is no re-ranker.
    """
    path = home_expanded(source)
    if not path.is_dir() and (path.exists() or source.startswith((".", "/", "~", "\\")) or source.count("/") > 1):
        raise ModelUnavailable(f"cannot load the re-ranker: got {name!r}, which is no folder. {_EXPECTED}")
    source = str(path) if path.is_dir() else source
    try:
        with sleeping_threads():
            from sentence_transformers import CrossEncoder
        from transformers import AutoConfig
    except ImportError as error:
        raise MissingDependency("sentence-transformers", "dense", f"the re-ranker {name!r}") from error
    try:
        with quiet(), reports() as messages:
            architectures = getattr(AutoConfig.from_pretrained(source, trust_remote_code=False), "architectures", None) or [""]
            plain = not architectures[0].endswith(("ForSequenceClassification", "ForCausalLM"))
            if plain and not untrained:
                raise ModelUnavailable(
                    f"{name!r} is no re-ranker: got a model of the class {architectures[0]!r}, which has no score for a pair. "
                    f"Train one from it: `gnothi train reranker QUESTIONS --base {name}`. {_EXPECTED}"
                )
            model: Any = CrossEncoder(source, num_labels=1 if plain else None, trust_remote_code=False)
        check_found(messages, _NEW if plain else _NONE)
    except ModelUnavailable:
        raise
    except Exception as error:  # the library raises many kinds; to a user they all mean the same
        raise ModelUnavailable(f"cannot load the re-ranker {name!r}: {reason(error).rstrip('.')}. {_EXPECTED}") from error
    if model.num_labels != 1:
        raise ModelUnavailable(
            f"{name!r} is no re-ranker: got a model with {model.num_labels} outputs for a pair, expected one. {_EXPECTED}"
        )
    model.eval()
    return model


def _finite(name: str, scores: tuple[float, ...]) -> tuple[float, ...] | Exception:
    if all(map(math.isfinite, scores)):
        return scores
    return ModelUnavailable(f"the re-ranker {name!r} gave a score that is no number. Its weights are broken; use another one.")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """While a library loads: no progress bars, and no report of weights that are new because they are yet to be trained."""
    from transformers.utils import logging

    library: Any = logging
    enabled, verbosity = logging.is_progress_bar_enabled(), library.get_verbosity()
    library.disable_progress_bar()
    library.set_verbosity_error()
    try:
        yield
    finally:
        library.set_verbosity(verbosity)
        if enabled:
            library.enable_progress_bar()


def _open(argument: str) -> Reranker:
    return CrossEncoderReranker.open(argument)


def _fingerprint(argument: str) -> str:
    folder = LAB_FOLDER if argument == LAB else home_expanded(argument)
    return digest(files_of(folder)) if folder.is_dir() else version_of(argument)


SCHEME = Scheme(open=_open, summary="a cross-encoder: lab, a folder or a hub id (extra dense)", fingerprint=_fingerprint)
