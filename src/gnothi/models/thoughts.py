"""Thoughts of models that think before they answer, separated from the answer.

Families mark thoughts in their own ways; ``MARKS`` is the one table of them. A reply may hold both marks, the closing one alone
(where the prompt opened the block) or the opening one alone (where the length limit ended the thought).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Marks:
    """What opens and closes a thought. ``closes`` may begin the answer's own channel, too.

    ``opening``, ``closing`` and ``nothing`` are what the family writes, white space included: how a thought begins, what stands
    between it and the answer, and a thought that is none. ``stops`` are the strings that end a thought, ``ends`` those that end
    the answer where it is marked, too. ``paired``: so usual a text that only both together are marks.
    """

    name: str
    opens: str
    closes: str
    opening: str = ""
    closing: str = ""
    nothing: str = ""
    stops: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    paired: bool = False

    def __post_init__(self) -> None:
        usual = {
            "opening": f"{self.opens}\n",
            "closing": f"\n{self.closes}\n\n",
            "nothing": f"{self.opens}\n\n{self.closes}\n\n",
            "stops": (self.closes,),
        }
        for name, value in usual.items():
            object.__setattr__(self, name, getattr(self, name) or value)

    @property
    def pieces(self) -> tuple[str, ...]:
        """The parts of both marks that are tokens of their own in the family's vocabulary."""
        return tuple(dict.fromkeys(_PIECES.findall(self.opens + self.closes)))

    def rest(self, begun: str) -> str:
        """What closes a block that stands in a prompt as ``begun``, from the opening mark on."""
        if self.nothing.startswith(begun):
            return self.nothing[len(begun) :]
        return self.closing.lstrip("\n") if begun.endswith("\n") else self.closing


_PIECES = re.compile(r"<[^<>]+>|\[[^\[\]]+\]|◁[^▷]+▷")


def _tight(name: str, opens: str, closes: str) -> Marks:
    """Of a family that writes no white space about its marks."""
    return Marks(name, opens, closes, opens, closes, opens + closes)


HARMONY = Marks(
    "harmony",
    "<|channel|>analysis<|message|>",
    "<|channel|>final<|message|>",
    opening="<|channel|>analysis<|message|>",
    closing="<|end|><|start|>assistant<|channel|>final<|message|>",
    nothing="<|channel|>final<|message|>",
    stops=("<|end|>", "<|channel|>final<|message|>"),
)
"""Channels: thought and answer are two messages, each of which names its channel."""

MARKS: tuple[Marks, ...] = (
    Marks("think", "<think>", "</think>"),  # Qwen3, DeepSeek R1, GLM, SmolLM3, Phi-4-reasoning, MiniMax, Nemotron, EXAONE 4
    Marks("thinking", "<thinking>", "</thinking>"),
    Marks("thought", "<thought>", "</thought>"),  # EXAONE Deep
    Marks("reasoning", "<reasoning>", "</reasoning>"),
    Marks("seed", "<seed:think>", "</seed:think>", closing="\n</seed:think>", nothing="<seed:think>\n</seed:think>"),
    _tight("magistral", "[THINK]", "[/THINK]"),
    _tight("cohere", "<|START_THINKING|>", "<|END_THINKING|>"),
    _tight("kimi", "◁think▷", "◁/think▷"),
    Marks("open-thoughts", "<|begin_of_thought|>", "<|end_of_thought|>"),
    _tight("apertus", "<|inner_prefix|>", "<|inner_suffix|>"),
    Marks("gemma4", "<|channel>thought", "<channel|>", closing="<channel|>", nothing="<|channel>thought\n<channel|>"),
    HARMONY,  # gpt-oss
    Marks("harmony, shown without its special tokens", "analysis", "assistantfinal", paired=True),
    Marks(
        "kimi3",
        "<|open|>think<|sep|>",
        "<|close|>think<|sep|>",
        opening="<|open|>think<|sep|>",
        closing="<|close|>think<|sep|><|open|>response<|sep|>",
        nothing="<|open|>think<|sep|><|close|>think<|sep|><|open|>response<|sep|>",
        ends=("<|close|>",),
    ),
    Marks("marco", "<Thought>", "</Thought>"),
    Marks("pangu", "[unused16]", "[unused17]", closing="[unused17]", nothing="[unused16][unused17]"),
    Marks(
        "apriel",
        "Here are my reasoning steps:",
        "[BEGIN FINAL RESPONSE]",
        closing="\n[BEGIN FINAL RESPONSE]\n",
        nothing="[BEGIN FINAL RESPONSE]\n",
        ends=("[END FINAL RESPONSE]",),
    ),
    Marks("granite", "Here is my thought process:", "Here is my response:"),  # Granite 3.2; later ones think in tags
    Marks("front ends", '<details type="reasoning"', "</details>", paired=True),
)
_SURE = tuple(marks for marks in MARKS if not marks.paired)
_BLANK = r"[\s\ufeff\u200b]*"
_TAG = re.compile(r"<(\|?)(?!end)([\w:.-]*(?:think|thought|reason|reflect|scratchpad|monologue)[\w:.-]*)(\|?)>", re.IGNORECASE)
"""A tag of a family that is not in the table, by what its name says."""

WRAPPERS = (
    ("<answer>", "</answer>"),  # Hunyuan
    ("<response>", "</response>"),  # Granite 3.3
    ("<|START_RESPONSE|>", "<|END_RESPONSE|>"),  # Command A
    ("<|begin_of_solution|>", "<|end_of_solution|>"),
)
"""What some models put around the answer that follows a thought."""
_TURN = r"<\|(?:im_start|start_header_id|start)\|>|<start_of_turn>|<\|turn>"
_BEGINS = _TURN + r"|<\|(?:begin_of_text|assistant)\|>|<bos>|<s>|\[INST\]"
_ENDS = (
    r"<\|(?:im_end|endoftext|end_of_text|eot_id|eom_id|eot|end|return|user|END_OF_TURN_TOKEN)\|>|"
    r"</s>|<eos>|<end_of_turn>|<turn\|>|\[\|endofturn\|\]|<｜end▁of▁sentence｜>"
)
_HEADER = re.compile(rf"\s*(?:{_TURN})(?:assistant|model)(?:<\|end_header_id\|>)?\s*")
_LAST = re.compile(rf"({_ENDS})(?=\s*(?:{_BEGINS}|{_ENDS}|\Z))|{_BEGINS}")
"""Special tokens that begin and end a turn, which some servers leave in a reply."""


@dataclass(frozen=True, slots=True)
class SplitReply:
    """A reply in its parts; the answer is ``text[start:end]`` of the whole.

    Where the thought never ended, ``closed`` is False and there is no answer. ``opened``: the reply has an opening mark."""

    thought: str
    answer: str
    start: int
    end: int
    closed: bool = True
    opened: bool = False

    @property
    def thinks(self) -> bool:
        return self.start > 0 or not self.closed


def split_reply(text: str, opened: bool = False) -> SplitReply:
    """Thought and answer of a reply. ``opened`` says that the prompt opened the block, so that the reply begins inside it.

    A mark counts at the beginning of the reply, or, closing only, anywhere where no opening one stands before it: an answer
    that speaks about marks in its middle stays whole. Marks that are plain words count in pairs. Blocks that follow each other,
    or stand in each other, are one thought.
    """
    for marks in _possible(text):
        opening = re.match(_BLANK + re.escape(marks.opens), text, re.IGNORECASE)
        begins = opening.end() if opening else 0
        close = _end_of_thought(marks, text, begins)
        if marks.paired and (opening is None or close is None):
            continue
        if opening is None:
            first = re.search(re.escape(marks.closes), text, re.IGNORECASE)
            if first is None or marks.opens.lower() in text[: first.start()].lower() or not (opened or marks.pieces):
                continue
        if close is None:
            return SplitReply(text[begins:].strip(), "", len(text), len(text), closed=False, opened=opening is not None)
        return _answered(text, text[begins : close.start()], close.end(), opening is not None)
    if opened:
        return SplitReply(text.strip(), "", len(text), len(text), closed=False)
    return SplitReply("", text, 0, len(text))


def _possible(text: str) -> Iterator[Marks]:
    """The table, and what a text begins with, or closes, that is like it."""
    yield from MARKS
    begun = re.match(_BLANK + _TAG.pattern, text, re.IGNORECASE)
    if (tag := begun or _TAG.search(text.replace("</", "<").replace("<|/", "<|"))) is not None:
        yield _alike(tag)


def _alike(tag: re.Match[str]) -> Marks:
    before, name, after = tag.groups()
    return Marks(name, f"<{before}{name}{after}>", f"<{before}/{name}{after}>")


def _end_of_thought(marks: Marks, text: str, begins: int) -> re.Match[str] | None:
    """The mark that closes the thought begun there: the one that closes as many blocks as are open, or else the last."""
    opens, closes = re.escape(marks.opens), re.escape(marks.closes)
    closing: re.Match[str] | None = None
    depth = 1
    for mark in re.compile(f"(?P<opens>{opens})|{closes}", re.IGNORECASE).finditer(text, begins):
        if mark["opens"] is not None:
            if not depth and text[closing.end() if closing else 0 : mark.start()].strip():
                break  # in the middle of the answer
            depth += 1
        elif depth:
            depth, closing = depth - 1, mark
    return closing


def begun(text: str, cut: bool = False) -> Marks | None:
    """The marks of the thought that a reply begins with. ``cut``: the reply ended at the limit of its length, so that it may
    end within the opening mark."""
    text = text.lstrip()
    for marks in _SURE:
        if text.startswith(marks.opens):
            return marks
        if cut and any(text.startswith(piece) for piece in marks.pieces[:1]) and marks.opens.startswith(text):
            return marks
    tag = _TAG.match(text)
    return None if tag is None else _alike(tag)


def unclosed(text: str) -> tuple[Marks, str] | None:
    """The marks of the block that stands open at the end of a prompt, and the block so far."""
    for marks in _SURE:
        at = text.rfind(marks.opens)
        if at >= 0 and marks.closes not in text[at:]:
            return marks, text[at:]
    tag = re.search(_TAG.pattern + r"\s*$", text, re.IGNORECASE)
    return None if tag is None else (_alike(tag), tag[0])


def named(text: str) -> Marks | None:
    """The marks that a text speaks of: a template, or the instructions before a conversation."""
    if (found := next((marks for marks in _SURE if marks.opens in text or marks.closes in text), None)) is not None:
        return found
    return next((_alike(tag) for tag in _TAG.finditer(text) if _alike(tag).closes in text), None)


def of_vocabulary(added: Collection[str]) -> Marks | None:
    """The marks that the tokens added to a vocabulary make up."""
    return next((marks for marks in _SURE if marks.pieces and set(marks.pieces) <= set(added)), None)


def pieces(added: Iterable[str]) -> frozenset[str]:
    """Of the tokens added to a vocabulary those that marks are made of, or that end a thought."""
    known = {piece for marks in MARKS for piece in (*marks.pieces, *_PIECES.findall("".join(marks.stops)))}
    there = known & set(added)
    # Other families end every message with the token that ends a thought in channels.
    return frozenset(there if set(HARMONY.pieces) <= there else there - {"<|end|>"})


def _answered(text: str, thought: str, start: int, opened: bool) -> SplitReply:
    """With the answer from ``start`` on, without white space before it and without what is put around it."""
    start += len(text[start:]) - len(text[start:].lstrip())
    end = len(text)
    for opens, closes in WRAPPERS:
        if text.startswith(opens, start):
            start += len(opens)
            start += len(text[start:]) - len(text[start:].lstrip())
            close = text.find(closes, start)
            end = close if close >= 0 else end
    return SplitReply(_CHANNELS.sub("", thought).strip(), text[start:end], start, end, opened=opened)


def without_header(text: str) -> str:
    """A reply without the special tokens that begin a turn, at its beginning."""
    header = _HEADER.match(text)
    return text[header.end() :] if header else text


def end_of_turn(text: str) -> int:
    """Where a special token ends an answer, with nothing after it or a further turn; else, and where the answer holds the
    beginning of a turn before it, as one does that speaks of such tokens, the end of the text."""
    last = _LAST.search(text)
    return last.start() if last is not None and last[1] else len(text)


_CHANNELS = re.compile(r"<\|(?:end|start|channel|message|return)\|>(?:assistant|analysis|commentary)?")
