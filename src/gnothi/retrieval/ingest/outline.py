"""Where a reader is in a document: its headings, and the metadata of all its passages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from gnothi.retrieval.ingest.base import Block, Kind
from gnothi.retrieval.ingest.split import collapse
from gnothi.retrieval.ingest.tables import Cell, Table, TableText

BETWEEN = " > "
_NOWHERE: Mapping[str, str | int] = {}
_DEFAULT = re.compile(
    r"(?:microsoft \w+ - )?"
    r"(?:untitled(?: (?:document|presentation|page))?|(?:new |powerpoint )?(?:document|presentation)|new page|slide(?= \d))"
    r"[ -]?\d{0,2}",
    re.IGNORECASE,
)  # titles that programs give a document which has none
_LONGEST = 300  # characters of a heading; what is longer is text that was made to look like one


def own_title(title: str) -> str:
    """What a document says that its title is; empty where that says nothing (``untitled``)."""
    text = collapse(title)
    return "" if _DEFAULT.fullmatch(text) else text


class Outline:
    """Makes the blocks of a document. Their title is the document's (its own, else its first heading of level 1, else the
    file's name) and that of the section; ``metadata`` are those of all passages that follow, and may be added to."""

    def __init__(self, name: str, document: str = "") -> None:
        self.name = name
        self._document = collapse(document)
        self.metadata: dict[str, str | int | float | bool] = {}
        self._path: list[tuple[int, str]] = []

    @property
    def document(self) -> str:
        return self._document

    @document.setter
    def document(self, title: str) -> None:
        self._document = own_title(title)

    def describe(self, author: str, date: str) -> None:
        """Keep who wrote the document and its day, where they are known."""
        self.metadata.update({name: value for name, value in (("author", author), ("date", date)) if value})

    def enter(self, level: int, heading: str) -> Iterator[Block]:
        """A section begins. Gives a block where the heading is too long to be one."""
        text = collapse(heading)
        if len(text) > _LONGEST:
            yield self.block(text + "\n\n")
            return
        if level == 1 and not self.document:
            self.document = text
        self._path = [(above, title) for above, title in self._path if above < level]
        if text and text != self.document:
            self._path.append((level, text))

    @property
    def title(self) -> str:
        return BETWEEN.join([self.document or self.name, *(title for _, title in self._path)])

    def block(
        self,
        text: str,
        read: int = 0,
        kind: Kind = "text",
        under: Sequence[str] = (),
        places: Mapping[str, str | int] = _NOWHERE,
    ) -> Block:
        """``under`` are the names of parts below the section, as a table's caption; ``places`` are metadata of this block."""
        below = [part for part in dict.fromkeys(under) if part]
        title = BETWEEN.join([self.title, *(part for part in below if part != self.title.rpartition(BETWEEN)[2])])
        section = BETWEEN.join([*(part for _, part in self._path), *below])
        metadata = {**self.metadata, **({"section": section} if section else {}), **places}
        return Block(title, text, read, metadata=metadata, kind=kind)

    def notice(self, text: str) -> Block:
        return Block(self.title, "", notice=text)

    def code(self, text: str, read: int = 0) -> Block:
        return self.block(text.removesuffix("\n") + "\n", read, "code")

    def row_blocks(
        self, table: Table, texts: Iterable[TableText], read: int = 0, places: Mapping[str, str | int] = _NOWHERE
    ) -> Iterator[Block]:
        """The blocks of a table's rows."""
        for row in texts:
            text = f"{row.text}\n"
            yield self.block(text if row.kind == "row" else text + "\n", read, row.kind, (table.caption, row.group), places)

    def table(
        self,
        rows: Iterable[Sequence[Cell]],
        table: Table | None = None,
        read: int = 0,
        places: Mapping[str, str | int] = _NOWHERE,
    ) -> Iterator[Block]:
        """The blocks of a whole table."""
        table = table or Table()
        for row in rows:
            yield from self.row_blocks(table, table.add(row), read, places)
        yield from self.row_blocks(table, table.end(), read, places)


# Raised letters in plain text: 10 to the 6th is ``10^6``, not 106; the 19th stays the 19th, H2O stays H2O.

_POWER = re.compile(r"[+\-−–]?\d[\d.,/]*")


def raised(before: str, text: str, link: bool = False) -> str:
    """How ``text``, raised after ``before``, is written. A link that is raised leads to a note: ``[1]``."""
    inner = text.strip()
    last = before[-1:]
    if link and inner.isdigit():
        return f"[{inner}]"
    power = _POWER.fullmatch(inner) if last.isalnum() or last in (")", "]") else None
    variable = len(inner) == 1 and inner.isalpha() and inner != "o" and last.isalpha() and not before[-2:-1].isalnum()
    return f"^{inner}" if power or variable else text
