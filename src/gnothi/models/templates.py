"""Chat templates are programs that come with a model: they run in a sandbox (transformers'), and for so long only.

Whatever a template does about thinking, its text ends where the answer begins: after a thought that is closed (``Template``
called), or after the opening of one (``Template.opened``).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from types import FrameType
from typing import Any

from gnothi.errors import InvalidInput, InvalidSetting
from gnothi.models.switches import Form, Thinking, program_of
from gnothi.models.thoughts import HARMONY, WRAPPERS, Marks, named, of_vocabulary, unclosed

STEPS = 1_000_000
"""Lines that a template may run for one prompt; usual ones run some dozens a message."""
TRIAL = ({"role": "user", "content": "Who?"}, {"role": "assistant", "content": "Ann"}, {"role": "user", "content": "And who?"})
TODAY = "auto"
# In place of instructions to think that a template writes where it is given none.
_INSTEAD = ("", "You are a helpful assistant.")

Messages = Sequence[Mapping[str, str]]


class _Endless(Exception):
    pass


class Template:
    """Messages as one text, by a tokenizer's chat template. Tried once where it is made: those of models that also see or hear
    may take the content of a message in parts, and leave out a plain text silently.

    ``thinking`` says whether the model is to think before it answers, at most so many ``tokens``. ``day`` is what the template
    takes for today, as 2026-11-27. ``marks`` are those of the model's thoughts, None where nothing names any.

    Raises InvalidInput for a template that cannot be read, refuses what it is given, leaves it out, or does not end;
    InvalidSetting where thinking is asked of a template that knows none, or a day that is none."""

    def __init__(self, tokenizer: Any, thinking: Thinking = "off", tokens: int = 0, day: str = TODAY) -> None:
        self._tokenizer = tokenizer
        self._program = program_of(tokenizer)
        today = _date(day)
        self._dates = self._program.on(today)
        self.thinking = thinking
        self.tokens = tokens
        self._in_parts = self._takes_parts()
        self._shut = self._form("off", tokens)
        off = self._rendered(TRIAL, self._shut)
        on = self._try_form(self._form("on", tokens)) or off
        added = frozenset(getattr(tokenizer, "get_added_vocab", dict)())
        instructed, in_source = _in_instructions(off), named(self._program.source)
        self.marks = _standing(off) or instructed or _standing(on) or _in_instructions(on) or in_source or of_vocabulary(added)
        # Not told to think, too, the model would begin a thought: its prompt asks for one, or thoughts are taken out of earlier
        # turns and nothing tells it to have none.
        switched = off != on and (self._program.switches or self._shut.system is not None)
        taken_out = in_source is not None and not {in_source.opens, in_source.closes}.isdisjoint(self._program.texts)
        self._always = instructed is not None or (taken_out and not switched)
        self._wrappers = self._around(off, on)
        if thinking != "off":
            self._open = self._checked(thinking)
        self.day = today.isoformat() if self._depends_on(today, off) else ""

    @property
    def metadata(self) -> dict[str, str]:
        """What a run should record of it."""
        metadata = {"date": self.day} if self.day else {}
        if self.marks is None:
            return metadata
        if self.thinking == "off":
            return {"thinking": "off", **metadata}
        on = f"{self.thinking}, {self.tokens} tokens at most; scores and states of prompts after an empty thought"
        return {"thinking": on, **metadata}

    def __call__(self, messages: Messages) -> str:
        text = self._rendered(messages, self._shut)
        tail = _tail(text, messages)
        return self._wrapped(text + self._ended(tail), tail, thought=False)

    def opened(self, messages: Messages) -> str:
        """As far as the thought's beginning."""
        text = self._rendered(messages, self._open)
        assert self.marks is not None
        return text if unclosed(_tail(text, messages)) else text + self.marks.opening

    def answering(self, thought: str) -> str:
        """A thought as it stands after ``opened``, closed, so that the answer follows."""
        assert self.marks is not None
        return self._wrapped(thought + self.marks.rest(self.marks.opening + thought), "", thought=True)

    def stops(self, thought: bool) -> tuple[str, ...]:
        """What ends an answer, with a thought before it or not, beside what the task says."""
        around = self._wrappers[thought]
        return ((around[1],) if around else ()) + (self.marks.ends if self.marks else ())

    def _takes_parts(self) -> bool:
        """Whether it takes the content of a message in parts. Raises InvalidInput where it takes neither those nor a text."""
        failures = []
        for self._in_parts in (False, True):
            try:
                text = self._rendered(TRIAL, Form())
                if missing := [message["content"] for message in TRIAL if message["content"] not in text]:
                    raise _failed(f"it leaves out what is said ({missing[0]!r})")
            except InvalidInput as error:
                failures.append(error)
            else:
                return self._in_parts
        raise failures[0]

    # --- how this one is switched --------------------------------------------------------------------------------------

    def _form(self, thinking: Thinking, tokens: int) -> Form:
        """The way in which the template thinks so much, or does not."""
        form = Form(self._program.arguments(thinking, tokens))
        if thinking in ("off", "on") and form.arguments and self._try_form(form) is None:
            form = Form()  # whatever it is called like, it is not for that
        others: list[str] = []
        if (word := self._program.word(thinking != "off")) is not None and not form.arguments:
            others = [word]
        elif thinking == "off" and (text := self._try_form(form)) is not None and _in_instructions(text):
            others = list(_INSTEAD)
        for system in others:
            other = Form(form.arguments, system)
            if (text := self._try_form(other)) is not None and not (thinking == "off" and _in_instructions(text)):
                return other
        return form

    def _checked(self, thinking: Thinking) -> Form:
        """The way in which it thinks, where it can."""
        if self.marks is None:
            raise InvalidSetting(
                f"setting 'model.thinking': got {thinking!r}, and neither the chat template nor the vocabulary of this model "
                "has marks for thinking. Expected 'off' with it."
            )
        if thinking != "on" and not self._program.takes_effort:
            raise InvalidSetting(
                f"setting 'model.thinking': got {thinking!r}, and this model's chat template has no setting for effort. "
                "Expected 'off' or 'on' with it; <--set model.thinking_tokens=NUMBER> says how long it may think."
            )
        form = self._form(thinking, self.tokens)
        tail = _tail(self._rendered(TRIAL, form), TRIAL)
        if self.marks.closes in tail:
            raise InvalidSetting(
                f"setting 'model.thinking': got {thinking!r}, and this model's chat template closes the thought whatever it is "
                "told. Expected 'off' with it."
            )
        return form

    def _around(self, off: str, on: str) -> tuple[tuple[str, str] | None, tuple[str, str] | None]:
        """What the model puts around an answer without a thought, and with one: its beginning is written for it, so that the
        answer stands inside."""
        wrapper = next((around for around in WRAPPERS if around[0] in self._program.source), None)
        if self.marks is None or wrapper is None:
            return None, None
        # Some templates name the wrapper in the instructions to think alone.
        return (None if wrapper[0] in on and wrapper[0] not in off else wrapper), wrapper

    def _wrapped(self, text: str, tail: str, thought: bool) -> str:
        around = self._wrappers[thought]
        if around is None or around[0] in tail:
            return text
        return text + around[0] + ("" if around[0].startswith("<|") else "\n")

    def _ended(self, tail: str) -> str:
        """What a text that ends with ``tail`` lacks for the answer to begin."""
        if (standing := unclosed(tail)) is not None:
            marks, block = standing
            return marks.rest(block)
        if self.marks is None or self.marks.closes in tail:
            return ""
        return self.marks.nothing if self._always or self.marks is HARMONY else ""

    def _depends_on(self, today: date, text: str) -> bool:
        """Whether ``text`` (of TRIAL) is another on another day."""
        if not self._program.dated:
            return False
        self._dates = self._program.on(today + timedelta(days=400))
        other = self._rendered(TRIAL, self._shut)
        self._dates = self._program.on(today)
        return other != text

    # --- rendering -----------------------------------------------------------------------------------------------------

    def _try_form(self, form: Form) -> str | None:
        """TRIAL in this form; None where the template refuses that."""
        try:
            return self._rendered(TRIAL, form)
        except InvalidInput:
            return None

    def _rendered(self, messages: Messages, form: Form) -> str:
        turns = list(messages) if form.system is None else [{"role": "system", "content": form.system}, *messages]
        try:
            with _bounded(STEPS):
                text = self._tokenizer.apply_chat_template(
                    [self._turn(message) for message in turns],
                    tokenize=False,
                    add_generation_prompt=True,
                    **form.arguments,
                    **self._dates,
                )
        except ImportError:
            raise
        except Exception as error:  # noqa: BLE001 - a program of strangers may raise anything
            why = f"it runs on after {STEPS:,} steps" if isinstance(error, _Endless) else f"{type(error).__name__}: {error}"
            raise _failed(why[:300]) from None
        return str(text)

    def _turn(self, message: Mapping[str, str]) -> dict[str, Any]:
        content = message["content"]
        return {**message, "content": [{"type": "text", "text": content}] if self._in_parts else content}


def _failed(why: str) -> InvalidInput:
    return InvalidInput(
        f"the model's chat template fails: {why}. Expected one that writes messages of a user and an assistant, in turn. "
        "Correct chat_template in the model's folder, or use none: <--set model.renderer=plain>."
    )


def _tail(text: str, messages: Messages) -> str:
    """What follows the last message."""
    content = messages[-1]["content"].strip()
    at = text.rfind(content) if content else -1
    return text if at < 0 else text[at + len(content) :]


def _in_instructions(text: str) -> Marks | None:
    """The marks of thoughts that a text (of TRIAL) names before the first turn."""
    return named(text.partition(TRIAL[0]["content"])[0])


def _standing(text: str) -> Marks | None:
    """The marks at the end of a text (of TRIAL), open or closed."""
    return named(_tail(text, TRIAL))


def _date(day: str) -> date:
    if day == TODAY:
        return date.today()
    try:
        return date.fromisoformat(day)
    except ValueError:
        raise InvalidSetting(f"setting 'model.date': got {day!r}, expected a date such as 2026-11-27, or 'auto'.") from None


@contextmanager
def _bounded(steps: int) -> Iterator[None]:
    """Raise _Endless in this thread after so many lines of Python."""
    remaining = steps

    def line(frame: FrameType, event: str, _: object) -> Any:  # noqa: ARG001 - what sys.settrace calls
        nonlocal remaining
        remaining -= 1
        if remaining < 0:
            raise _Endless
        return line

    before = sys.gettrace()
    sys.settrace(line)
    try:
        yield
    finally:
        sys.settrace(before)
