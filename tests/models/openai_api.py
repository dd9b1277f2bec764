"""The OpenAI API over one of our models: JSON in, JSON out, nothing of HTTP (``tests/models/openai_server.py`` adds that).

The completions endpoint continues raw text. The chat endpoint reads back what ``rendering.messages`` wrote, so that a model
with a format of its own understands it, and continues a begun turn of the assistant (``continue_final_message``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gnothi.errors import PromptTooLong, UsageError
from gnothi.methods.steps import prompts
from gnothi.models.rendering import Renderer
from gnothi.protocols import LanguageModel
from gnothi.types import Decoding, Generation, Passage, Prompt, Samples, Task

RAW = Task("raw")
TOLD = re.compile(r"\n\nThe reply begins like this:\n(.*)\n\nGive the rest of it", re.DOTALL)
TASKS = [task for task in vars(prompts).values() if isinstance(task, Task) and task.instruction]
CANDIDATES = ("Yes", "No", "w1", "w2", "w3", "Maybe")


class Raw:
    """Renders prompts of the task ``raw`` as they are, all others as the model's own renderer does."""

    def __init__(self, inner: Renderer) -> None:
        self.name, self.special_tokens = "raw", inner.special_tokens
        self._inner = inner

    def render(self, prompt: Prompt) -> str:
        return prompt.question if prompt.task == RAW else self._inner.render(prompt)


class BadRequest(Exception):
    def __init__(self, message: str, parameter: str | None = None, status: int = 400) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": {"message": message, "type": "invalid_request_error", "param": parameter, "code": None}}


@dataclass(frozen=True)
class Offer:
    """What this server can do. ``refuses`` are fields that it answers with an error, ``ignores`` those it overlooks."""

    chat: bool = True
    completions: bool = True
    refuses: frozenset[str] = frozenset()
    ignores: frozenset[str] = frozenset()
    usage: bool = True
    stop_reason: bool = True
    owner: str = "gnothi"
    shifted: bool = False
    """Of an echoed token it tells the probability that it has at the next place, as llama-cpp-python 0.3.36 does."""
    repeats: bool = False
    """A model that says again what it was told of its reply."""


_AT_LENGTH: dict[tuple[str, Prompt, int, Decoding], Samples] = {}


class Api:
    """``model`` renders with ``Raw``; ``tokenizer`` is its tokenizer. ``charged`` lists (prompt, generated) tokens."""

    def __init__(self, model: LanguageModel, tokenizer: Any, name: str, offer: Offer) -> None:
        self.name = name
        self.offer = offer
        self.charged: list[tuple[int, int]] = []
        self._model = model
        self._tokenizer = tokenizer

    async def answer(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Raises BadRequest."""
        if path == "/v1/models":
            return {"object": "list", "data": [{"id": self.name, "object": "model", "owned_by": self.offer.owner}]}
        chat = path == "/v1/chat/completions"
        if not (chat and self.offer.chat) and not (path == "/v1/completions" and self.offer.completions):
            raise BadRequest("Not Found", status=404)
        if body.get("model") != self.name:
            raise BadRequest(f"The model {body.get('model')!r} does not exist.", "model", 404)
        for field in self.offer.refuses & body.keys():
            if field != "n" or body["n"] > 1:
                raise BadRequest(f"Unsupported parameter: '{field}' is not supported with this model.", field)
        body = {key: value for key, value in body.items() if key not in self.offer.ignores}
        try:
            if body.get("echo"):
                return await self._echo(body)
            return await self._continue(body, chat)
        except PromptTooLong as error:
            tokens, limit = re.findall(r"\d+", str(error))[-2:]
            raise BadRequest(
                f"This model's maximum context length is {limit} tokens. However, you requested {tokens} tokens."
            ) from error
        except UsageError as error:
            raise BadRequest(str(error)) from error

    async def _continue(self, body: Mapping[str, Any], chat: bool) -> dict[str, Any]:
        prompt = _read_messages(body) if chat else Prompt(RAW, body["prompt"])
        stops = body.get("stop") or []
        decoding = Decoding(
            max_tokens=body.get("max_tokens", body.get("max_completion_tokens", 16)),
            temperature=body.get("temperature", 1.0),
            top_k=body.get("top_k", 0),
            top_p=body.get("top_p", 1.0),
            stop=tuple(stops),
            seed=body.get("seed", 0),
        )
        told = TOLD.search(body["messages"][-1]["content"]) if chat else None
        before = f"{told[1]} " if told and self.offer.repeats else ""
        if any(stop in before for stop in stops):
            decoding = Decoding(max_tokens=1)
        samples = await self._said(prompt, body.get("n", 1), decoding)
        choices = [self._choice(row, generation, body, chat, before) for row, generation in enumerate(samples.generations)]
        if body.get("top_logprobs", 0) > 1 or (not chat and body.get("logprobs", 0) > 1):
            scores = {score.text: score.logprob for score in await self._model.score(prompt, CANDIDATES)}
            if chat:
                top = [{"token": text, "logprob": number, "bytes": None} for text, number in scores.items()]
                choices[0]["logprobs"] = {"content": [{"token": "x", "logprob": -1.0, "top_logprobs": top}]}
            else:
                choices[0]["logprobs"] = {"top_logprobs": [scores], "tokens": ["x"], "token_logprobs": [-1.0]}
        read = samples.generations[0].prompt_tokens
        return self._reply(choices, read, sum(one.generated_tokens for one in samples.generations), chat)

    async def _said(self, prompt: Prompt, n: int, decoding: Decoding) -> Samples:
        """Whoever opens a model lets it speak at length, which it always does in the same words: once is enough."""
        key = (self._model.name, prompt, n, decoding)
        if key in _AT_LENGTH:
            return _AT_LENGTH[key]
        samples = await self._model.sample(prompt, n, decoding)
        if decoding.max_tokens > 100:
            _AT_LENGTH[key] = samples
        return samples

    def _choice(self, row: int, generation: Generation, body: Mapping[str, Any], chat: bool, before: str) -> dict[str, Any]:
        text, finish = before + generation.text, generation.finish
        for stop in body.get("stop") or []:
            if stop in before:
                text, finish = before[: before.index(stop)], "stop"
        choice: dict[str, Any] = {"index": row, "finish_reason": "length" if finish == "length" else "stop", "logprobs": None}
        if self.offer.stop_reason:
            choice["stop_reason"] = body["stop"][0] if finish == "stop" else None
        tokens = [(token.text, token.logprob) for token in generation.tokens]
        if before:
            tokens = [(before, -0.5), *tokens]
        if chat:
            choice["message"] = {"role": "assistant", "content": text}
            if body.get("logprobs"):
                content = [{"token": name, "bytes": list(name.encode()), "logprob": number} for name, number in tokens]
                choice["logprobs"] = {"content": content}
        else:
            choice["text"] = text
            if body.get("logprobs"):
                choice["logprobs"] = {
                    "tokens": [name for name, _ in tokens],
                    "token_logprobs": [number for _, number in tokens],
                }
        return choice

    async def _echo(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Every token of the prompt with its log-probability, BOS and all, as vLLM echoes it."""
        text = body["prompt"]
        (scored,) = await self._model.score(Prompt(RAW, ""), [text])
        spans = self._tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
        assert len(spans) == len(scored.logprobs)
        names, done = ["<bos>"], 0
        for _, end in spans:
            names.append(text[done:end])
            done = end
        generation = await self._model.generate(Prompt(RAW, text), Decoding(max_tokens=1))
        numbers = [None, *scored.logprobs, -0.1]
        if self.offer.shifted:
            (again,) = await self._model.score(Prompt(RAW, text), [text])
            numbers[1:-1] = [*scored.logprobs[1:], again.logprobs[0] - 5]
        choice = {
            "index": 0,
            "text": text + generation.text,
            "finish_reason": "length",
            "logprobs": {"tokens": [*names, generation.text], "token_logprobs": numbers},
        }
        return self._reply([choice], len(names), 1, False)

    def _reply(self, choices: list[dict[str, Any]], read: int, written: int, chat: bool) -> dict[str, Any]:
        self.charged.append((read, written))
        usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
        kind = "chat.completion" if chat else "text_completion"
        reply = {"id": f"x-{len(self.charged)}", "object": kind, "created": 0, "model": self.name, "choices": choices}
        return reply | ({"usage": usage} if self.offer.usage else {})


def _read_messages(body: Mapping[str, Any]) -> Prompt:
    turns = [dict(turn) for turn in body["messages"]]
    so_far = turns.pop()["content"] if body.get("continue_final_message") else ""
    last = turns[-1]["content"]
    told = TOLD.search(last)
    if told:
        so_far, last = told[1], last[: told.start()]
    task = next((task for task in TASKS if turns[0]["content"].startswith(task.instruction.strip())), None)
    body_of_last = last if task is None or len(turns) > 1 else last[len(task.instruction.strip()) :].strip()
    question, passages, choices = body_of_last, [], ()
    for line in body_of_last.splitlines():
        if context := re.fullmatch(r"Context \[\d+\]: (.*)", line):
            title, colon, text = context[1].partition(": ")
            passages.append(Passage("", text if colon else context[1], title if colon else ""))
        elif line.startswith("Question: "):
            question = line.removeprefix("Question: ")
        elif line.startswith("Choices: "):
            choices = tuple(line.removeprefix("Choices: ").split(" / "))
    named = Task("reason") if task is None and so_far else Task("answer") if task is None else Task(task.name)
    return Prompt(named, question, tuple(passages), choices, so_far)
