"""What the model replies when asked whether it knows (the prompt ablation of SeaKR, section 5.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gnothi.protocols import LanguageModel
from gnothi.signals.base import PromptSignal
from gnothi.signals.kinds.self_report import know_prompt
from gnothi.signals.replies import reply_says_yes
from gnothi.types import Capabilities, Decoding, Prompt


@dataclass(frozen=True, slots=True)
class SaysItKnows(PromptSignal):
    """0 when the model's greedy reply begins with "Yes", else 1: text is enough."""

    name: ClassVar[str] = "prompt"
    needs: ClassVar[Capabilities] = Capabilities()
    default_threshold: ClassVar[float | None] = 0.5

    async def from_prompt(self, model: LanguageModel, prompt: Prompt) -> float:
        reply = await model.generate(know_prompt(prompt), Decoding(max_tokens=10, stop=("\n",)))
        return 0.0 if reply_says_yes(reply.text) else 1.0
