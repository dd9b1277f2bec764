"""How chat templates are set to think, to think so much, or not to: by variables, or by words in the system turn. (Fields of
requests to servers: ``remote.thinking_fields``.)"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal

Thinking = Literal["off", "on", "minimal", "low", "medium", "high", "xhigh", "max"]
"""Whether models think before they answer; the words after "on" are efforts."""

YES_OR_NO = ("enable_thinking", "thinking", "enable_reasoning", "reasoning", "think", "use_thinking", "thinking_enabled")
BUDGETS = ("thinking_budget", "reasoning_budget", "thinking_token_budget")
"""Variables that take the number of tokens to think; 0 is none."""
EFFORTS = ("reasoning_effort", "thinking_effort", "reasoning_strength")
MODES = ("thinking_mode", "reasoning_mode")
_NO_EFFORT, _SOME_EFFORT = ("none", "off", "disabled"), ("high", "medium", "max", "low")
_LEAST_EFFORT = ("minimal", "low")
_OFF, _ON = ("disabled", "off", "chat", "none"), ("enabled", "on", "thinking")
WORDS = (("/no_think", "/think"), ("/nothink", "/think"), ("detailed thinking off", "detailed thinking on"))
"""What some templates look for in the system turn, where they take no variable: off, on."""

# The library's own function would ask the clock, for every prompt anew.
_CALENDAR = (
    "{%- macro strftime_now(format) -%}{%- if format not in gnothi_dates -%}"
    "{{- raise_exception('its format for the date, ' ~ format ~ ', is written nowhere in it') -}}{%- endif -%}"
    "{{- gnothi_dates[format] -}}{%- endmacro %}{{ '' }}"  # the last piece keeps a template's first line as it is
)

_GENERATION = re.compile(r"\{%-?\s*(?:end)?generation\s*-?%\}")  # a tag of the library's, which jinja2 alone does not know


@dataclass(frozen=True)
class Program:
    """What a template is made of: its text, the variables that it takes from outside, and the texts it names."""

    source: str = ""
    variables: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()

    @property
    def dated(self) -> bool:
        return "strftime_now" in self.variables

    def on(self, day: date) -> dict[str, Any]:
        """What makes it take ``day`` for today, in place of what the clock says."""
        if not self.dated:
            return {}
        formats = {text: day.strftime(text) for text in self.texts if "%" in text}
        return {"chat_template": _CALENDAR + self.source, "gnothi_dates": formats}

    @property
    def switches(self) -> bool:
        """Whether anything tells it not to think; the least effort may be some."""
        none = self.takes_effort and self._first(_NO_EFFORT)
        return bool(none or self.variables & {*YES_OR_NO, *BUDGETS, *MODES} or self.word(on=False))

    @property
    def takes_effort(self) -> bool:
        return any(name in self.variables for name in EFFORTS)

    def arguments(self, thinking: Thinking, tokens: int) -> dict[str, Any]:
        """The arguments for the template: only those that it reads."""
        on = thinking != "off"
        values: dict[str, Any] = dict.fromkeys(YES_OR_NO, on)
        values |= dict.fromkeys(BUDGETS, tokens if on else 0)
        values |= dict.fromkeys(MODES, self._first(_ON if on else _OFF))
        if thinking not in ("off", "on"):
            effort: str | None = thinking
        elif not on:
            effort = self._first((*_NO_EFFORT, *_LEAST_EFFORT)) or _LEAST_EFFORT[-1]
        else:  # what it does by itself, unless that may be nothing
            effort = self._first(_SOME_EFFORT) or _SOME_EFFORT[0] if self._first(_NO_EFFORT) else None
        values |= dict.fromkeys(EFFORTS, effort)
        return {name: value for name, value in values.items() if name in self.variables and value is not None}

    def word(self, on: bool) -> str | None:
        """The word in the system turn that switches, where there is one."""
        return next((words[on] for words in WORDS if words[0] in self.source), None)

    def _first(self, words: Sequence[str]) -> str | None:
        return next((word for word in words if word in self.texts), None)


@dataclass(frozen=True)
class Form:
    """One way of rendering a conversation: the template's ``arguments``, and what the system turn says (None: no such turn)."""

    arguments: dict[str, Any] = field(default_factory=dict)
    system: str | None = None


def program_of(tokenizer: Any) -> Program:
    """That of a tokenizer's chat template. One that cannot be read takes nothing: it fails where it is tried."""
    from jinja2 import Environment, TemplateError, meta, nodes

    template = getattr(tokenizer, "chat_template", None)
    if isinstance(template, dict):  # several, by name
        template = template.get("default") or next(iter(template.values()), None)
    source = str(template or "")
    try:
        tree = Environment(extensions=["jinja2.ext.loopcontrols"]).parse(_GENERATION.sub("", source))
    except (TemplateError, RecursionError):
        return Program(source)
    texts = frozenset(one.value for one in tree.find_all(nodes.Const) if isinstance(one.value, str))
    return Program(source, frozenset(meta.find_undeclared_variables(tree)), texts)
