"""A front end puts a question and what a document says into one text: here they are separated again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from gnothi.serving import templates
from gnothi.serving.templates import LABELS

_TAG = re.compile(r"<(/?)([A-Za-z_][\w.-]*)(\s[^<>]*)?>")
_ATTRIBUTE = re.compile(r"([\w-]{1,40})\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_COMMENT = re.compile(r"<!--.{0,400}?-->", re.DOTALL)
_ADVICE = re.compile(r"<(\w{1,40}[._](?:instructions?|docstring))>.{0,2000}?</\1>", re.DOTALL)
_PARAGRAPHS = re.compile(r"\n[ \t]*\n|\n-{5,}[ \t]*\n")
_ASKS = re.compile(r"[?？؟]")
_UNENDED = 20
"""So many openings that nothing ends are tried: a text of more is no template."""
_DEEP = 8
Kind = Literal["evidence", "question", "answer", "other"]


@dataclass(frozen=True, slots=True)
class Attached:
    """A text that came with a question. ``cite`` is what it is to be called in the answer; empty where nobody said."""

    text: str
    title: str = ""
    cite: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """What a user's message asks, and what came with it."""

    question: str
    attached: tuple[Attached, ...] = ()


@dataclass(frozen=True, slots=True)
class _Span:
    start: int
    end: int
    attached: tuple[Attached, ...]


@dataclass(frozen=True, slots=True)
class _Element:
    name: str
    attributes: dict[str, str]
    start: int
    inside: int
    stop: int
    end: int


@dataclass(frozen=True, slots=True)
class _Section:
    kind: Kind
    start: int
    inside: int


def separate(text: str) -> Message:
    """The question alone, and the evidence in order; where nothing shows that it is a template, the text as it came."""
    elements = _elements(text)
    questions = [one for one in elements if one.name in templates.QUESTION_TAGS and _inner(text, one)]
    spans = _spans(text, elements)
    attached = tuple(one for span in spans for one in span.attached)
    if questions:
        return Message(_inner(text, questions[-1]), attached)
    if attached:
        return Message(_around(text, spans), attached)
    return _labelled(text) or Message(_plain(text))


def attached_in(text: str) -> tuple[Attached, ...]:
    """The evidence in instructions, which are left aside."""
    spans = _spans(text, _elements(text))
    if attached := tuple(one for span in spans for one in span.attached):
        return attached
    first, _, rest = _first(text)
    if not templates.SPEAKS_OF_EVIDENCE.search(first):
        return ()
    label = LABELS["evidence"].search(text)
    return _attached(text[label.end() :] if label else rest)


def helper(text: str) -> bool:
    """Whether it is a prompt of a front end's own, for a title say. One that shows evidence before any of the chat is none."""
    text = text.lstrip()
    if not any(one.match(text) for one in templates.HELPERS):
        return False
    if not text.startswith("#"):
        return True
    chat = templates.CHAT.search(text)
    return chat is not None and not any(span.attached and span.start < chat.start() for span in _spans(text, _elements(text)))


# --- evidence --------------------------------------------------------------------------------------------------------------


def _spans(text: str, elements: Sequence[_Element]) -> list[_Span]:
    """Where evidence stands, in order: between tags; where there are none, between other marks, or tags within a line."""
    tagged = _tagged(text, elements, templates.EVIDENCE_TAGS)
    if any(span.attached for span in tagged):
        return tagged
    return list(_marked(text)) or _tagged(text, _elements(text, anywhere=True), templates.PLAIN_TAGS)


def _tagged(text: str, elements: Sequence[_Element], names: frozenset[str]) -> list[_Span]:
    return [
        _Span(one.start, one.end, tuple(_inside(text[one.inside : one.stop], _called(one.attributes))))
        for one in elements
        if one.name in names
    ]


def _elements(text: str, anywhere: bool = False) -> list[_Element]:
    """Known tags with their ends, those alone that stand in no other; ``anywhere``, or else at the beginning of a line, since
    instructions speak of tags, too."""
    known = templates.EVIDENCE_TAGS | templates.QUESTION_TAGS
    opened: dict[str, list[re.Match[str]]] = {}
    whole: list[_Element] = []
    for tag in _TAG.finditer(text):
        name = tag[2].lower()
        if not tag[1]:
            opened.setdefault(name, []).append(tag)
        elif opened.get(name):
            begun = opened[name].pop()
            if name in known and (anywhere or not text[text.rfind("\n", 0, begun.start()) + 1 : begun.start()].strip()):
                attributes = {one[1].lower(): one[2] or one[3] or "" for one in _ATTRIBUTE.finditer(begun[3] or "")}
                whole.append(_Element(name, attributes, begun.start(), begun.end(), tag.start(), tag.end()))
    outer: list[_Element] = []
    for one in sorted(whole, key=lambda one: one.start):
        if not outer or one.start >= outer[-1].end:
            outer.append(one)
    return outer


def _inside(text: str, called: Attached, depth: int = 0) -> Iterator[Attached]:
    """The sources that an element holds: those in it, or itself."""
    within = [one for one in _elements(text, anywhere=True) if one.name in templates.EVIDENCE_TAGS] if depth < _DEEP else []
    names_it = any(one.name != "source" for one in within)  # <source> beside the content is the content's name
    holds = [one for one in within if one.name != "source" or one.attributes or not names_it]
    children = {
        name: child for name, child in _children(text) if not any(one.inside <= child.start() < one.stop for one in holds)
    }
    names = (children[name][3].strip() for name in templates.NAME_TAGS if name in children)
    cites = (children[name][3].strip() for name in templates.CITE_TAGS if name in children)
    called = Attached("", next(filter(None, names), called.title), next(filter(None, cites), called.cite))
    if holds:
        for one in holds:
            own = _called(one.attributes)
            yield from _inside(
                text[one.inside : one.stop], Attached("", own.title or called.title, own.cite or called.cite), depth + 1
            )
        return
    for child in sorted(children.values(), key=lambda child: -child.start()):
        text = text[: child.start()] + text[child.end() :]
    text = _ADVICE.sub("", text).replace("<![CDATA[", "").replace("]]>", "").strip()
    if text:
        yield replace(called, text=text)


_CHILD = re.compile(
    rf"<({'|'.join((*templates.NAME_TAGS, *templates.CITE_TAGS, *sorted(templates.OTHER_TAGS)))})()>([^<>\n]{{0,300}})</\1>",
    re.IGNORECASE,
)


def _children(text: str) -> Iterator[tuple[str, re.Match[str]]]:
    for match in _CHILD.finditer(text):
        yield match[1].lower(), match


def _called(attributes: dict[str, str]) -> Attached:
    title = next((attributes[name] for name in templates.NAME_TAGS if attributes.get(name)), "")
    return Attached("", title, attributes.get("id", ""))


def _marked(text: str) -> Iterator[_Span]:
    if (fence := templates.FENCED.search(text)) and (end := text.rfind("\n```")) > fence.end():
        parts = templates.FILE.split(text[fence.end() + 1 : end])
        attached = tuple(one for name, part in zip(parts[1::2], parts[2::2], strict=True) for one in _attached(part, name))
        yield _Span(fence.start(), end + 4, attached)
        return
    spans: list[_Span] = []
    for begins, ends in templates.BLOCKS:
        place = unended = 0
        while unended < _UNENDED and (begun := begins.search(text, place)):
            groups = {key: one or "" for key, one in begun.groupdict().items()}
            closing = re.compile(
                ends.format(**{key: re.escape(one) for key, one in groups.items()}), re.IGNORECASE | re.MULTILINE
            ).search(text, begun.end())
            if closing is None:
                place, unended = begun.end(), unended + 1
                continue
            place = closing.end()
            spans.append(_Span(begun.start(), place, _attached(text[begun.end() : closing.start()], groups.get("name", ""))))
    last = 0
    for span in sorted(spans, key=lambda span: span.start):
        if span.start >= last:
            yield span
            last = span.end


def _attached(text: str, title: str = "") -> tuple[Attached, ...]:
    return (Attached(text.strip(), title.strip()),) if text.strip() else ()


# --- the question ----------------------------------------------------------------------------------------------------------


def _around(text: str, spans: Sequence[_Span]) -> str:
    """What is asked before or behind the evidence: what is called a question, else what has a question mark, else what is
    behind."""
    before, after = (_COMMENT.sub("", _ADVICE.sub("", one)) for one in (text[: spans[0].start], text[spans[-1].end :]))
    for part in (after, before):
        sections = [one for one in _sections(part) if one.kind == "question"]
        if sections and (content := _content(part, sections[-1])):
            return content
    before, after = _unadvised(_free(before)), _unadvised(_free(after))
    if not after or (before and _ASKS.search(before) and not _ASKS.search(after)):
        return before or _task(text[: spans[0].start])
    return after


def _labelled(text: str) -> Message | None:
    """By labels alone: "Context: ... Question: ...", in either order; or after an instruction that speaks of evidence."""
    sections = _sections(text)
    evidence = next((one for one in sections if one.kind == "evidence"), None)
    questions = [one for one in sections if one.kind == "question"]
    ends = next((one.start for one in reversed(sections) if one.kind == "answer" and not _content(text, one)), len(text))
    if evidence is None:
        first, place, _ = _first(text)
        if questions and templates.SPEAKS_OF_EVIDENCE.search(first) and place < questions[-1].start:
            attached = _attached(text[place : questions[-1].start])
            question = _content(text, questions[-1])
            return Message(question, attached) if attached and question else None
        return None
    if questions and questions[0].start < evidence.start:
        question, attached = _content(text, questions[0]), _attached(text[evidence.inside : ends])
    elif questions:
        question, attached = _content(text, questions[-1]), _attached(text[evidence.inside : questions[-1].start])
    else:
        before, block = _free(text[: evidence.start]), text[evidence.inside : ends].strip()
        parts = _PARAGRAPHS.split(block)
        if _ASKS.search(before):
            question, attached = before, _attached(block)
        elif len(parts) > 1 and _ASKS.search(parts[-1]):
            question, attached = parts[-1].strip(), _attached(block[: -len(parts[-1])])
        else:
            *lines, last = block.split("\n")
            question, attached = (last.strip() if _ASKS.search(last[-3:]) else ""), _attached("\n".join(lines))
    return Message(question, attached) if question and attached else None


def _sections(text: str) -> list[_Section]:
    kinds: tuple[Kind, ...] = ("evidence", "question", "answer", "other")
    sections = [_Section(kind, one.start(), one.end()) for kind in kinds for one in LABELS[kind].finditer(text)]
    return sorted(sections, key=lambda one: (one.start, one.inside))


def _content(text: str, section: _Section) -> str:
    """Up to the next label."""
    ends = (one.start for one in _sections(text) if one.start >= section.inside)
    return text[section.inside : next(ends, len(text))].strip()


def _free(text: str) -> str:
    """What stands under no label, or under the last one that is neither of a question nor of evidence where that is all."""
    sections = _sections(text)
    return (text[: sections[0].start] if sections else text).strip()


def _unadvised(text: str) -> str:
    """Without an instruction about the evidence before what is asked."""
    first, _, rest = _first(text)
    return rest.strip() if rest.strip() and templates.SPEAKS_OF_EVIDENCE.search(first) else text


def _task(text: str) -> str:
    """What a template says is to be done; its first section."""
    return next((content for one in _sections(text) if (content := _content(text, one))), "")


def _first(text: str) -> tuple[str, int, str]:
    """The first paragraph, where it ends, and the rest."""
    end = _PARAGRAPHS.search(text.lstrip())
    if end is None:
        return text, len(text), ""
    place = len(text) - len(text.lstrip()) + end.end()
    return text[:place], place, text[place:]


def _plain(text: str) -> str:
    """Without a heading before it, as "### Task:"."""
    heading = next((match for kind in ("other", "question") if (match := LABELS[kind].match(text.lstrip()))), None)
    if heading is None or not heading[0].lstrip().startswith("#"):
        return text
    return text.lstrip()[heading.end() :].strip() or text


def _inner(text: str, element: _Element) -> str:
    return text[element.inside : element.stop].strip()
