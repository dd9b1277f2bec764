"""Sets of tasks: TOML files of instructions and demonstrations, the shipped ones by name, a user's own by path.

    [answer]
    instruction = "..."              # left out: the default set's

    [[answer.demonstrations]]
    question = "Who planned the Dunmere Salt Tram?"
    passages = [{ title = "Odile Varr", text = "..." }]
    choices = ["...", "..."]
    answer = "Odile Varr"

A ``form`` stands in place of all of them: the whole prompt, with {question} where the question goes and {passages} where
the texts before it go.

A set replaces those tasks of the default one that it holds.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from gnothi.errors import InvalidInput
from gnothi.files import TOML_ERRORS, home_expanded
from gnothi.types import Demonstration, Passage, Task

DEFAULT = "default"
SHIPPED = (DEFAULT, "short", "zero-shot", "skill-rag", "seakr", "iekr")
_PASSAGE = "demonstration"


@lru_cache
def shipped(name: str = DEFAULT) -> Mapping[str, Task]:
    """The tasks of a set that comes with the package, by key."""
    text = files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8")
    own = _Reader(f"{name}.toml").tasks(tomllib.loads(text), None if name == DEFAULT else shipped())
    return MappingProxyType(own if name == DEFAULT else {**shipped(), **own})


def tasks_of(spec: str) -> Mapping[str, Task]:
    """The tasks of a shipped set or of a user's file, by key. Raises InvalidInput for a file that is no such set."""
    if spec in SHIPPED:
        return shipped(spec)
    path = home_expanded(spec)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InvalidInput(
            f"cannot read the demonstrations {spec!r} ({reason}). Expected one of {', '.join(SHIPPED)} or a TOML file."
        ) from None
    except TOML_ERRORS as error:
        raise InvalidInput(f"demonstrations {spec}: got no TOML ({error}).") from None
    return MappingProxyType({**shipped(), **_Reader(spec).tasks(data, shipped())})


class _Reader:
    """Reads a set, and says of what is wrong where it stands."""

    def __init__(self, source: str) -> None:
        self._source = source

    def tasks(self, data: Mapping[str, Any], known: Mapping[str, Task] | None) -> dict[str, Task]:
        if known is not None and (unknown := sorted(data.keys() - known.keys())):
            raise self._error(unknown[0], "an unknown task", f"one of {', '.join(known)}")
        return {key: self._task(key, value, known[key] if known else None) for key, value in data.items()}

    def _task(self, key: str, value: object, default: Task | None) -> Task:
        fields = self._table(key, value, ("instruction", "demonstrations", "form", *(() if default else ("name",))))
        if "form" in fields:
            return self._printed(key, fields, default)
        instruction = self._text(
            f"{key}.instruction", fields.get("instruction", default.instruction if default else ""), blank=True
        )
        name = default.name if default else str(fields.get("name", key))
        if "demonstrations" not in fields:
            return Task(name, instruction, default.demonstrations if default else ())
        demonstrations = self._list(f"{key}.demonstrations", fields["demonstrations"])
        return Task(
            name,
            instruction,
            tuple(self._demonstration(f"{key}.demonstrations[{n}]", one) for n, one in enumerate(demonstrations)),
        )

    def _printed(self, key: str, fields: Mapping[str, Any], default: Task | None) -> Task:
        """A task that is asked in a form of its own."""
        if others := sorted(fields.keys() - {"form", "name"}):
            raise self._error(key, f"{others[0]} beside a form", "a form alone, which is the whole prompt")
        form = self._text(f"{key}.form", fields["form"])
        if "{question}" not in form:
            raise self._error(f"{key}.form", repr(form), "a prompt with {question} in it")
        return Task(default.name if default else str(fields.get("name", key)), answer_label="", form=form)

    def _demonstration(self, where: str, value: object) -> Demonstration:
        fields = self._table(where, value, ("question", "answer", "passages", "choices"), ("question", "answer"))
        passages = []
        for number, item in enumerate(self._list(f"{where}.passages", fields.get("passages", []))):
            at = f"{where}.passages[{number}]"
            passage = self._table(at, item, ("title", "text"), ("text",))
            title = self._text(f"{at}.title", passage.get("title", ""), blank=True)
            passages.append(Passage(_PASSAGE, self._text(f"{at}.text", passage["text"]), title))
        choices = self._list(f"{where}.choices", fields.get("choices", []))
        return Demonstration(
            self._text(f"{where}.question", fields["question"]),
            self._text(f"{where}.answer", fields["answer"]),
            tuple(passages),
            tuple(self._text(f"{where}.choices", choice) for choice in choices),
        )

    def _table(self, where: str, value: object, known: tuple[str, ...], needed: tuple[str, ...] = ()) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise self._error(where, repr(value), f"a table with {', '.join(known)}")
        if unknown := sorted(value.keys() - set(known)):
            raise self._error(where, f"the key {unknown[0]!r}", f"one of {', '.join(known)}")
        if missing := [key for key in needed if key not in value]:
            raise self._error(where, f"no {missing[0]}", " and ".join(needed))
        return value

    def _list(self, where: str, value: object) -> list[Any]:
        if not isinstance(value, list):
            raise self._error(where, repr(value), "a list")
        return value

    def _text(self, where: str, value: object, blank: bool = False) -> str:
        if not isinstance(value, str) or not (blank or value.strip()):
            raise self._error(where, repr(value), "a text")
        return value

    def _error(self, where: str, got: str, expected: str) -> InvalidInput:
        return InvalidInput(f"demonstrations {self._source}, {where}: got {got}, expected {expected}.")
