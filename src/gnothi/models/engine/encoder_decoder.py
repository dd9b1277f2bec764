"""The decode path of sequence-to-sequence models (T5 and its kind): the encoder reads the prompt, the decoder replies.

Prompts of a batch are padded on the right. When a model is opened, its steps are compared with plain passes of the library.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gnothi.errors import ModelUnavailable, UsageError
from gnothi.models.engine.compared import close, texts_for
from gnothi.models.engine.passes import Network, by_length
from gnothi.models.engine.path import InStep, PrefillSteps, run_to_end
from gnothi.models.engine.states import Captured
from gnothi.models.engine.trial import is_single


@dataclass(slots=True)
class _Read:
    """What the encoder made of prompts: states (prompts, tokens, size) and mask (prompts, tokens)."""

    states: Tensor
    mask: Tensor

    def rows(self, index: Tensor) -> _Read:
        return _Read(self.states[index], self.mask[index])


class EncoderDecoder(InStep):
    """``start`` are the tokens that the decoder begins with, ``closing`` those that end what the encoder reads. It gives no
    states."""

    name = "encoder-decoder"

    def __init__(self, network: Network, pad: int, start: Sequence[int], closing: Sequence[int]) -> None:
        self._network = network
        self._model, self._device, self._pad = network.model, network.device, pad
        self._start, self._closing = list(start), list(closing)
        self._running: tuple[_Read, Any] | None = None
        self._kind: Any = None  # of what the encoder returns: a decoder may ask for more of it than states

    @property
    def cached_tokens(self) -> int:
        return int(self._running[0].mask.sum()) if self._running is not None else 0

    def admit(self, prompts: Sequence[tuple[int, ...]]) -> PrefillSteps[tuple[Tensor, Captured]]:
        """In one pass: an encoder sees a prompt as a whole."""
        yield from ()
        from transformers import DynamicCache, EncoderDecoderCache

        read = self._encode(prompts)
        cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
        self._running = (read, cache)
        return self._decode(read, self._starts(len(prompts)), cache)[:, -1], {}

    def step(self, tokens: Tensor) -> tuple[Tensor, Captured]:
        assert self._running is not None
        read, cache = self._running
        return self._decode(read, tokens[:, None], cache)[:, -1], {}

    def _select(self, rows: Tensor) -> None:
        assert self._running is not None
        read, cache = self._running
        cache.reorder_cache(rows)
        self._running = (read.rows(rows), cache)

    def read(self, prompts: Sequence[tuple[int, ...]]) -> Reading:
        return Reading(self, self._encode(prompts))

    def ahead(self, prompts: Sequence[tuple[int, ...]], tokens: int) -> Iterator[tuple[list[int], Tensor]]:
        for places in by_length([len(prompt) for prompt in prompts], tokens):
            yield places, self.first(self._encode([prompts[place] for place in places]))

    def ends(self, prompts: Sequence[tuple[int, ...]], tokens: int) -> Iterator[tuple[list[int], Captured]]:  # noqa: ARG002
        """No states: nobody may ask for them."""
        raise UsageError("hidden states: a sequence-to-sequence model offers none; use a signal that needs only text.")

    def check(self) -> None:
        """Two prompts side by side, and replies of several tokens, step by step and at once: as plain passes over each alone.

        Raises ModelUnavailable where the library itself says one thing of a whole text and another of its beginning."""
        texts = texts_for(self._model.config, int(self._model.get_input_embeddings().weight.shape[0]))
        reply, read_before = list(texts.long[: texts.following]), self._network.read_tokens
        with torch.inference_mode():
            plain = [self._plain([*prompt, *self._closing], reply) for prompt in texts.prompts]
            steps = [run_to_end(self.admit(texts.prompts))[0]]
            steps += [self.step(torch.tensor([token] * 2, device=self._device))[0] for token in reply]
            after = self.following(self._encode(texts.prompts), [reply] * 2)
        self._running, self._network.read_tokens = None, read_before
        single = is_single(self._model)
        for place, expected in enumerate(plain):
            stepwise = torch.stack([logits[place] for logits in steps])
            if not (close(stepwise, expected, single) and close(after[place], expected[1:], single)):
                raise ModelUnavailable(
                    f"the {type(self._model).__name__} cannot be used: got other probabilities for a reply token by token than "
                    "for the whole reply. Expected a model of which transformers computes both alike, such as T5 or BART."
                )

    def _plain(self, prompt: Sequence[int], reply: Sequence[int]) -> Tensor:
        """Logits (1 + tokens, vocabulary) of one text alone, without a cache."""
        tokens = torch.tensor([[*self._start, *reply]], device=self._device)
        read = torch.tensor([prompt], device=self._device)
        logits: Tensor = self._model(
            input_ids=read, attention_mask=torch.ones_like(read), decoder_input_ids=tokens, use_cache=False
        ).logits
        return logits[0, len(self._start) - 1 :]

    # --- passes --------------------------------------------------------------------------------------------------------

    def _encode(self, prompts: Sequence[tuple[int, ...]]) -> _Read:
        closed = [[*prompt, *self._closing] for prompt in prompts]
        self._network.read_tokens += sum(map(len, closed))
        width = max(map(len, closed))
        tokens = torch.tensor([[*row, *[self._pad] * (width - len(row))] for row in closed], device=self._device)
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in closed], device=self._device)
        encoded = self._model.get_encoder()(input_ids=tokens, attention_mask=mask)
        self._kind = type(encoded)
        return _Read(encoded.last_hidden_state, mask)

    def _decode(self, read: _Read, tokens: Tensor, cache: Any = None) -> Tensor:
        """Logits (rows, tokens, vocabulary) after each of ``tokens`` (rows, tokens); ``cache`` grows by them."""
        arguments = {} if cache is None else {str(self._network.cache_name): cache}
        encoded = self._kind(last_hidden_state=read.states)
        logits: Tensor = self._model(
            encoder_outputs=encoded,
            attention_mask=read.mask,
            decoder_input_ids=tokens,
            use_cache=cache is not None,
            **arguments,
        ).logits
        return logits

    def _starts(self, rows: int) -> Tensor:
        return torch.tensor([self._start] * rows, device=self._device)

    def first(self, read: _Read) -> Tensor:
        """Logits (prompts, vocabulary) of the first token of a reply."""
        return self._decode(read, self._starts(len(read.states)))[:, -1]

    def following(self, read: _Read, tokens: Sequence[Sequence[int]]) -> list[Tensor]:
        """Logits after each of ``tokens[i]``, (tokens, vocabulary), said after prompt i."""
        width = max(map(len, tokens))
        # Padding on the right: what follows a continuation's last token cannot be seen by it.
        inputs = [[*self._start, *row, *[self._pad] * (width - len(row))] for row in tokens]
        logits = self._decode(read, torch.tensor(inputs, device=self._device))[:, len(self._start) :]
        return [row[: len(reply)] for row, reply in zip(logits, tokens, strict=True)]


class Reading:
    """``path.Reading``."""

    def __init__(self, path: EncoderDecoder, read: _Read) -> None:
        self._path, self._read = path, read
        self.logits = path.first(read)

    def follow(self, index: Sequence[int], tokens: Sequence[Sequence[int]]) -> list[Tensor]:
        return self._path.following(self._read.rows(torch.tensor(index, device=self._read.mask.device)), tokens)

    def close(self) -> None:
        """Nothing outlives the object."""


def starting_tokens(model: Any) -> tuple[int, ...]:
    """What the decoder begins with: the start token, and the first token of every reply where the model forces one (BART)."""
    settings = model.generation_config
    start = settings.decoder_start_token_id
    if start is None:
        start = model.config.decoder_start_token_id
    forced = settings.forced_bos_token_id
    return (start,) if forced is None else (start, forced)


def closing_tokens(tokenizer: Any) -> tuple[int, ...]:
    """What the tokenizer ends a text with, which the encoder is used to: the end of sequence, or nothing."""
    ids = tokenizer("a")["input_ids"]
    return (tokenizer.eos_token_id,) if ids and ids[-1] == tokenizer.eos_token_id else ()
