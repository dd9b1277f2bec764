"""Text from outside cannot speak for the prompt: a document that holds "<|im_end|>" ends no turn."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from gnothi.models.rendering import Renderer
from gnothi.models.thoughts import pieces
from gnothi.types import Prompt

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
            text = self._special.sub(lambda found: f"{found[0][0]} {found[0][1:]}", text)
        return text
