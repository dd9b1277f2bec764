"""Renderers turn a Prompt into the text a model continues. They know formats, never a method.

For every renderer: the text of a prompt with an answer so far is the text without it plus the answer so far, joined by
``join``. So a step of a growing answer shares its whole prefix with the step before it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Protocol

from gnothi.errors import InvalidSetting
from gnothi.models.switches import Thinking
from gnothi.models.templates import TODAY, Template
from gnothi.models.thoughts import pieces
from gnothi.types import Demonstration, Passage, Prompt, Task

RendererName = Literal["auto", "plain", "chat", "tagged", "instruction"]

# Self-RAG's reflection tokens follow the text before them without a space, as in what its models were trained on.
_UNSPACED = (
    *("[Retrieval]", "[No Retrieval]", "[Continue to Use Evidence]", "[Relevant]", "[Irrelevant]"),
    *("[Fully supported]", "[Partially supported]", "[No support / Contradictory]", "[Utility:"),
)


class Renderer(Protocol):
    """``special_tokens`` says whether the tokenizer must add its own (BOS): a chat template brings them in its text."""

    @property
    def name(self) -> str: ...

    @property
    def special_tokens(self) -> bool: ...

    def render(self, prompt: Prompt) -> str: ...


def join(before: str, after: str) -> str:
    """``after`` as the continuation of ``before``: separated by a space unless one of them brings whitespace, or ``after``
    begins with a reflection token.

    Trailing spaces of ``after`` are dropped: most tokenizers put a space into the token that follows it, so text that
    ends with one would be continued badly.
    """
    after = after.rstrip(" ")
    if not after.strip():
        return before
    if not before or before[-1].isspace():
        return before + after.lstrip(" ")
    return before + after if after[0].isspace() or after.startswith(_UNSPACED) else f"{before} {after}"


_FITTING = 2
_PLACES = re.compile(r"\{(?:passages|question)\}")


def demonstrations(prompt: Prompt) -> tuple[Demonstration, ...]:
    """The demonstrations to show: where passages stand before the question those with passages, else those without; all of
    them where fewer than two are like that. Small models answer from what a demonstration of the other kind says."""
    fitting = tuple(one for one in prompt.task.demonstrations if bool(one.passages) == bool(prompt.passages))
    return fitting if len(fitting) >= _FITTING else prompt.task.demonstrations


class Plain:
    """Plain completion, as base models read it: instruction, worked examples, evidence, question, label, answer so far."""

    name = "plain"
    special_tokens = True

    def render(self, prompt: Prompt) -> str:
        task = prompt.task
        blocks = [task.instruction.strip()] if task.instruction.strip() else []
        for demonstration in demonstrations(prompt):
            blocks.append(join(_labelled(task, demonstration), demonstration.answer.strip()))
        blocks.append(_labelled(task, prompt))
        return join("\n\n".join(blocks), prompt.answer_so_far)


def messages(prompt: Prompt, label: str = "") -> list[dict[str, str]]:
    """The turns of a chat, as role and content, without the answer so far. ``label`` opens the demonstrations' answers."""
    turns: list[tuple[str, str]] = []
    for demonstration in demonstrations(prompt):
        turns += [("user", _body(prompt.task, demonstration)), ("assistant", join(label, demonstration.answer.strip()))]
    turns.append(("user", _body(prompt.task, prompt)))
    if prompt.task.instruction.strip():
        turns[0] = ("user", f"{prompt.task.instruction.strip()}\n\n{turns[0][1]}")
    return [{"role": role, "content": content} for role, content in turns]


@dataclass(frozen=True, slots=True)
class Begun(Prompt):
    """A prompt whose reply has begun ``before`` the answer: with a thought, say. Where it ``thinks``, the reply began with the
    opening of one; ``labelled`` says that the answer, and its label, come next."""

    thinks: bool = False
    before: str = ""
    labelled: bool = True

    @classmethod
    def of(cls, prompt: Prompt, *, thinks: bool = False, before: str = "", labelled: bool = True) -> Begun:
        values: dict[str, Any] = {item.name: getattr(prompt, item.name) for item in fields(Prompt)}
        return cls(**values, thinks=thinks, before=before, labelled=labelled)


class Chat:
    """The tokenizer's chat template: instruction in the first user message (not every template has a system role),
    demonstrations as earlier turns, the answer so far as the beginning of the assistant's reply.

    Where there are demonstrations, the task's label ("Answer:") opens their answers and the reply: small chat models else go on
    chatting in whole sentences, whatever was shown. The label follows a thought, never stands in one.
    """

    name = "chat"
    special_tokens = False

    def __init__(self, template: Template) -> None:
        self.template = template

    def render(self, prompt: Prompt) -> str:
        label = prompt.task.answer_label if prompt.task.demonstrations and not prompt.task.form else ""
        turns = messages(prompt, label)
        if not isinstance(prompt, Begun):
            return join(self.template(turns) + label, prompt.answer_so_far)
        text = (self.template.opened if prompt.thinks else self.template)(turns) + prompt.before
        return join(text + label, prompt.answer_so_far) if prompt.labelled else text


class Tagged:
    """The laboratory model's format: tags instead of instructions, everything joined by single spaces.

    ``<passage> title : text ... <question> q <choices> a / b <task> answer so far``
    """

    name = "tagged"
    special_tokens = True

    def render(self, prompt: Prompt) -> str:
        pieces = []
        for passage in prompt.passages:
            title = f"{passage.title} : " if passage.title.strip() else ""
            pieces.append(f"<passage> {title}{passage.text}")
        pieces.append(f"<question> {prompt.question}")
        if prompt.choices:
            pieces.append(f"<choices> {' / '.join(prompt.choices)}")
        pieces.append(f"<{prompt.task.name}>")
        base = " ".join(" ".join(piece.split()) for piece in pieces)
        return join(base, " ".join(prompt.answer_so_far.split()))


class Instruction:
    """Instruction and response under headings, as many models fine-tuned from Llama read them (Self-RAG's among them)."""

    name = "instruction"
    special_tokens = True

    def render(self, prompt: Prompt) -> str:
        examples = [self._block(prompt.task, one, one.answer.strip()) for one in demonstrations(prompt)]
        before = "\n\n".join([*examples, self._block(prompt.task, prompt, "")])
        return join(before, prompt.answer_so_far)

    @staticmethod
    def _block(task: Task, example: Prompt | Demonstration, answer: str) -> str:
        instruction = task.instruction.strip()
        bare = not (example.passages or example.choices or task.form)
        question = " ".join(example.question.split()) if bare else _body(task, example)
        return (
            f"### Instruction:\n{instruction}\n\n## Input:\n\n{question}\n\n### Response:\n{answer}"
            if instruction
            else (f"### Instruction:\n{question}\n\n### Response:\n{answer}")
        )


def make_renderer(
    name: RendererName,
    tokenizer: Any,
    declared: str | None = None,
    *,
    thinking: Thinking = "off",
    tokens: int = 0,
    day: str = TODAY,
) -> Renderer:
    """``auto`` is what the model's folder declares, else chat if the tokenizer has a chat template, else plain. What follows is
    for a chat template (``Template``)."""
    has_template = bool(getattr(tokenizer, "chat_template", None))
    chosen = name if name != "auto" else declared or ("chat" if has_template else "plain")
    if thinking != "off" and chosen in ("plain", "tagged", "instruction"):
        raise InvalidSetting(
            f"setting 'model.thinking': got {thinking!r}, and prompts of this model are written by the renderer {chosen!r}, "
            "which knows no thoughts. Expected 'off', or a model with a chat template and model.renderer=chat."
        )
    if chosen == "plain":
        return Plain()
    if chosen == "tagged":
        return Tagged()
    if chosen == "instruction":
        return Instruction()
    if chosen != "chat":
        raise InvalidSetting(
            f"setting 'model.renderer': got {chosen!r}, expected one of auto, chat, instruction, plain, tagged."
        )
    if not has_template:
        raise InvalidSetting(
            "the chat renderer needs a chat template, which this tokenizer lacks; use <--set model.renderer=plain>."
        )

    return Chat(Template(tokenizer, thinking, tokens, day))


def _labelled(task: Task, example: Prompt | Demonstration) -> str:
    """What a reply follows in plain completion."""
    return _body(task, example) if task.form else f"{_body(task, example)}\n{task.answer_label}"


def _body(task: Task, example: Prompt | Demonstration) -> str:
    question = " ".join(example.question.split())
    choices = [f"Choices: {' / '.join(example.choices)}"] if example.choices else []
    if task.form:
        evidence = "".join(f"{_passage(passage)} " for passage in example.passages)
        placed = {"{passages}": evidence, "{question}": "\n".join([question, *choices])}
        return _PLACES.sub(lambda place: placed[place[0]], task.form)
    lines = [f"Context [{number}]: {_passage(passage)}" for number, passage in enumerate(example.passages, start=1)]
    return "\n".join([*lines, f"Question: {question}", *choices])


def _passage(passage: Passage) -> str:
    text = " ".join(passage.text.split())
    return f"{passage.title.strip()}: {text}" if passage.title.strip() else text


# A space cannot be put into anything shorter.
_SHORTEST = 3


class EscapeSpecialTokens:
    """A renderer before which question, choices and passages lose the tokenizer's special tokens, and those that mark thoughts:
    each gets a space behind its first letter and so is read as the plain text it is. What stands of the reply is left: the
    model's own tokens may be part of it (Self-RAG)."""

    def __init__(self, inner: Renderer, tokenizer: Any) -> None:
        self.inner = inner
        added = getattr(tokenizer, "added_tokens_decoder", {}).values()
        names = {str(token) for token in added if token.special} | pieces(map(str, added))
        names |= {str(one) for one in getattr(tokenizer, "all_special_tokens", ())}
        special = sorted((name for name in names if len(name) >= _SHORTEST), key=len, reverse=True)
        self._special = re.compile("|".join(map(re.escape, special))) if special else None

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def special_tokens(self) -> bool:
        return self.inner.special_tokens

    def render(self, prompt: Prompt) -> str:
        passages = tuple(replace(one, text=self.neutral(one.text), title=self.neutral(one.title)) for one in prompt.passages)
        choices = tuple(map(self.neutral, prompt.choices))
        return self.inner.render(replace(prompt, question=self.neutral(prompt.question), passages=passages, choices=choices))

    def neutral(self, text: str) -> str:
        """``text`` without a special token."""
        while self._special is not None and self._special.search(text):
            text = self._special.sub(lambda match: f"{match[0][0]} {match[0][1:]}", text)
        return text
