"""How a field of a dataclass says what it is for: its help, its range, and whether it names a resource."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any, TypeVar

from gnothi.errors import InvalidSetting

T = TypeVar("T")


def setting(default: T, help: str, at_least: float | None = None, at_most: float | None = None) -> T:
    """A dataclass field with a line of help and a range; ``check_ranges`` enforces it."""
    metadata: Mapping[str, Any] = {"help": help, "at_least": at_least, "at_most": at_most}
    return field(default=default, metadata=metadata)


def resource(help: str, required: bool = False) -> Any:
    """A field for a model (or another resource) that a user names like a setting; ``help`` says what it is for.

    A method can do without it, unless it is ``required``: then it is not made without one, though it can be described."""
    return field(default=None, metadata={"help": help, "required": required})


def check_ranges(method: Any, section: str = "") -> None:
    """Raise InvalidSetting for the first number outside its field's range; ``section`` begins the keys of the fields."""
    for item in fields(method):
        value, low, high = getattr(method, item.name), item.metadata.get("at_least"), item.metadata.get("at_most")
        if value is not None and not ((low is None or value >= low) and (high is None or value <= high)):
            raise InvalidSetting(f"setting {section + item.name!r}: got {value}, expected {range_of(item.metadata)}.")


def range_of(metadata: Mapping[str, Any]) -> str:
    """The range of a field in words; empty where it has none."""
    ends = [(word.replace("_", " "), metadata.get(word)) for word in ("at_least", "at_most")]
    return " and ".join(f"{word} {int(end) if end == int(end) else end}" for word, end in ends if end is not None)
