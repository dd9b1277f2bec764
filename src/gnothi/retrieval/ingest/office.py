"""What Microsoft's formats have in common (ECMA-376): properties, relations, runs of text."""

from __future__ import annotations

from collections.abc import Iterator

from gnothi.retrieval.ingest.archive import Archive, Element, attribute, local, text_of
from gnothi.retrieval.ingest.dates import day
from gnothi.retrieval.ingest.outline import Outline
from gnothi.retrieval.ingest.superscripts import raised

_NOT_SHOWN = frozenset(
    ("del", "moveFrom", "instrText", "delText", "Fallback", "rt", "txbxContent", "rPr", "pPr", "sdtPr", "endParaRPr")
)
_AS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}


def outline(archive: Archive) -> Outline:
    """With the document's own title, its author and the day it was last changed."""
    found = Outline(archive.path.stem)
    properties = [name for kind, name in archive.targets("").values() if kind == "core-properties"]
    for name in properties[:1]:
        if name in archive:
            said = {local(one): text_of(one).strip() for one in archive.tree(name)}
            found.document = " ".join(said.get("title", "").split())
            kept = {"author": said.get("creator", ""), "date": day(said.get("modified") or said.get("created"))}
            found.metadata.update({name: value for name, value in kept.items() if value})
    return found


def main_part(archive: Archive, expected: str) -> str:
    """The name of the part that all others belong to."""
    return next((name for kind, name in archive.targets("").values() if kind == "officeDocument" and name in archive), expected)


def paragraph_text(paragraph: Element) -> str:
    """Inserted text is in, deleted and hidden text, codes of fields and text boxes (paragraphs of their own) are out."""
    out: list[str] = []
    for part in _parts(paragraph):
        name = local(part)
        if name == "t":
            out.append(part.text or "")
        elif name in _AS:
            out.append(_AS[name])
        elif name == "r" and _is_raised(part):
            out.append(raised("".join(out[-3:]), paragraph_text(part)))
        elif name == "sup":  # of a formula
            out.append("^" + paragraph_text(part))
    return "".join(out)


def _parts(element: Element) -> Iterator[Element]:
    """What is shown below an element, in order; of raised text and of powers in formulas the outermost element only."""
    for child in element:
        name = local(child)
        if name in _NOT_SHOWN or (name == "r" and _has(child, "vanish")):
            continue
        yield child
        if name != "sup" and not (name == "r" and _is_raised(child)):
            yield from _parts(child)


def properties(element: Element) -> dict[str, Element]:
    """Of a run, paragraph, row or cell: what stands in its first element."""
    first = next(iter(element), None)
    return {local(one): one for one in first} if first is not None and local(first).endswith("Pr") else {}


def number(text: str, otherwise: int) -> int:
    """A small whole number of an attribute."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else otherwise


def _has(run: Element, name: str) -> bool:
    found = properties(run).get(name)
    return found is not None and attribute(found, "val") not in ("0", "false", "off")


def _is_raised(run: Element) -> bool:
    """By Word's property or by PowerPoint's share of the height of a line."""
    first = next(iter(run), None)
    if first is None or local(first) != "rPr":
        return False
    baseline = first.get("baseline", "")
    found = properties(run).get("vertAlign")
    return baseline.lstrip("0").rstrip("%").isdigit() or (found is not None and attribute(found, "val") == "superscript")
