"""From files of triples to a graph's folder: idempotent, resumable, bounded in memory.

Two steps. Reading appends what files say to a log (``import/``), with commits from which the same command goes on after a kill.
Arranging makes tables of the log, in a folder of their own, and puts them in force by replacing the manifest: until then
readers have the tables that were there before.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gnothi.errors import IndexUnavailable, InvalidInput
from gnothi.files import regular
from gnothi.graph import lemmas, readers
from gnothi.graph import templates as sentences
from gnothi.graph.graph import Manifest, is_graph, prepare, read_manifest
from gnothi.graph.log import Log
from gnothi.graph.readers import LABEL, ConceptNet, Malformed, Parser, node_names
from gnothi.graph.tables import arrange
from gnothi.graph.templates import Templates
from gnothi.locks import hold
from gnothi.retrieval.folder import disk_errors, write_manifest
from gnothi.retrieval.ingest.base import START
from gnothi.retrieval.ingest.discover import SourceFile, Survey, nothing_found, survey
from gnothi.retrieval.ingest.json_file import Line, lines
from gnothi.retrieval.ledger import Entry, FolderLedger
from gnothi.retrieval.listing import Deleted, take_out
from gnothi.retrieval.sources import SourceReader, SourcesReport

_IMPORT = "import"
_TEMPLATES = "templates.json"
_COMMIT_SECONDS = 5.0
_TELL_EVERY = 4096  # lines


@dataclass(slots=True)
class GraphReport(SourcesReport):
    """What a build did.

    ``nodes`` and ``facts`` count the whole graph, ``read`` the triples read in this run, ``empty`` lines that hold no fact for
    this graph (another language, marked as false), ``without_sentence`` relations without a sentence of their own.
    """

    nodes: int = 0
    facts: int = 0
    read: int = 0
    without_sentence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GraphProgress:
    """``done`` of ``total``: bytes while reading, a share of 1 while arranging. ``triples`` were read in this run."""

    stage: Literal["reading", "arranging"]
    done: float
    total: float
    triples: int


def build_graph(
    sources: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    templates: Templates | None = None,
    columns: Sequence[str] | None = None,
    language: str | None = None,
    lemmatiser: str | None = None,
    skip_invalid: bool = False,
    keep_missing: bool = False,
    on_progress: Callable[[GraphProgress], None] | None = None,
) -> GraphReport:
    """Read ``sources`` (files and folders) into the graph folder ``out``, which is made or added to.

    ``templates``, ``language`` and ``lemmatiser`` None are those of earlier builds of the folder, at first ConceptNet's
    sentences for its dump and none for others, English, and the best lemmatiser installed. ``columns`` are those of TSV files.
    ``keep_missing`` keeps what was read from files that are gone. Raises InvalidInput for a source or line that cannot be used
    (``skip_invalid`` leaves out lines), IndexUnavailable when the folder cannot be written. What was read before an error or
    interrupt is kept.
    """
    folder = Path(out)
    files = survey(sources, folder, readers.SUFFIXES)
    if files.is_empty and not is_graph(folder):
        raise nothing_found(files, readers.SUFFIXES)
    with disk_errors(folder):
        prepare(folder)
        (folder / _IMPORT).mkdir(exist_ok=True)
    notes = notes_of(folder)
    with (
        _alone(folder),
        disk_errors(folder),
        closing(Log(notes)) as log,
        closing(FolderLedger(notes)) as ledger,
    ):
        work = _Build(
            folder, read_manifest(folder), log, ledger, columns, language, skip_invalid, files, keep_missing, on_progress
        )
        return work.run(templates, lemmatiser)


def notes_of(folder: str | os.PathLike[str]) -> Path:
    """Where a graph's folder notes what it was read from."""
    return Path(folder) / _IMPORT


def delete_from_graph(out: str | os.PathLike[str], names: Sequence[str]) -> Deleted:
    """Take what was read from files out of a graph: each by its name there, its path, or a folder of either. Raises
    InvalidInput where nothing would be left, IndexUnavailable."""
    with _alone(Path(out)), closing(FolderLedger(notes_of(out))) as ledger:
        deleted, _ = take_out(ledger, names)
        if next(ledger.entries(), None) is None:
            raise InvalidInput(f"{out} would hold nothing any more: remove the folder.")
        ledger.save()
    return replace(deleted, passages=build_graph((), out).facts)


def _alone(folder: Path) -> ExitStack:
    busy = (
        f"the graph {folder} is being built by another process: one build at a time, and any number of readers. "
        "Wait until the other build has ended, then run this again."
    )
    return hold(notes_of(folder) / ".lock", IndexUnavailable, busy)


class _Build(SourceReader[GraphReport]):
    def __init__(
        self,
        folder: Path,
        manifest: Manifest,
        log: Log,
        ledger: FolderLedger,
        columns: Sequence[str] | None,
        language: str | None,
        skip_invalid: bool,
        files: Survey,
        keep_missing: bool,
        on_progress: Callable[[GraphProgress], None] | None,
    ) -> None:
        self.language = language or manifest.language
        settings = f"{','.join(columns or ())}:{self.language}"
        super().__init__(GraphReport(), ledger, settings, skip_invalid, files, str(folder), readers.SUFFIXES, keep_missing)
        self.folder = folder
        self.manifest = manifest
        self.log, self._noted = log, ledger
        self.columns = columns
        self.on_progress = on_progress
        self.dump = False  # one of the sources is ConceptNet's own

    def run(self, templates: Templates | None, lemmatiser: str | None) -> GraphReport:
        earlier = self.manifest.lemmatiser if self.language == self.manifest.language else ""
        how = lemmatiser or earlier or lemmas.best(self.language)
        lemmas.lemmatiser(how, self.language)  # what is not there is told before anything is read
        try:
            self.read_all()
        except InvalidInput:
            self._commit()
            raise
        # After an interrupt, which may fall between a name and its triple, the last commit stands: some seconds are lost.
        self._commit()
        self._arrange(self._templates(templates), how)
        self.report.nodes, self.report.facts = self.manifest.nodes, self.manifest.facts
        self.report.seconds = time.monotonic() - self.started
        return self.report

    # Reading.

    def _read(self, file: SourceFile, entry: Entry) -> None:
        first = next(lines(file.path, START), None)
        if first is None:
            return
        known = sentences.conceptnet()
        names = {*known.sentences, *known.merged}
        parser = readers.parser(file.path, first.text or "", self.columns, self.language, names)
        self.dump |= isinstance(parser, ConceptNet)
        self._lines(file, entry, parser, first.number if parser.header else 0)

    def _lines(self, file: SourceFile, entry: Entry, parser: Parser, header: int) -> None:
        source = self.log.source(entry.origin)
        invalid, empty, passages = entry.invalid, entry.empty, entry.passages
        line = None
        for line in lines(file.path, entry.checkpoint):
            if line.number == header:
                continue
            try:
                triple = parser.parse(line.text) if line.text is not None else None
                problem = line.problem
            except Malformed as error:
                triple, problem = None, str(error)
            if triple is not None:
                self.log.add(triple, source)
                self.report.read += 1
                passages += 1
            elif problem:
                where = f"{file.path}, line {line.number}"
                if not self.skip_invalid:
                    raise InvalidInput(f"{where}: {problem}. Correct the line, or read all others with <--skip-invalid>.")
                invalid += 1
                self.report.invalid.show(f"{where}: {problem}")
            else:
                empty += 1
            if line.number % _TELL_EVERY == 0:
                self.current = _reached(entry, line, passages, invalid, empty)
                if time.monotonic() - self.last_commit > _COMMIT_SECONDS:
                    self._commit()
                self._report_progress(line.read)
        if line is not None:
            self.current = _reached(entry, line, passages, invalid, empty)

    def _commit(self) -> None:
        """The log first, then the ledger: after a kill between the two some lines are read again, and equal facts merge."""
        if self.manifest.complete and self.report.read:
            self.manifest = replace(self.manifest, complete=False)
            write_manifest(self.folder, self.manifest)
        self.log.commit()
        self._save()

    # Arranging.

    def _templates(self, templates: Templates | None) -> Templates:
        """Those given, else those of earlier builds, else ConceptNet's for its dump."""
        file = self.folder / _IMPORT / _TEMPLATES
        if templates is None and file.exists():
            try:
                return Templates.from_dict(json.loads(regular(file).read_bytes()))
            except (ValueError, RecursionError) as error:
                raise IndexUnavailable(
                    f"{file} is damaged: {error}. Give the templates again with <--templates FILE>."
                ) from None
        result = templates or (sentences.conceptnet() if self.dump else None)
        if result is not None:
            file.write_text(json.dumps(result.as_dict(), ensure_ascii=False), encoding="utf-8")
        return result or Templates()

    def _arrange(self, templates: Templates, lemmatiser: str) -> None:
        """Tables of all that is in the log, unless those in force were made of the same."""
        live = sorted(self._live())
        made_of = [self.log.rows, live, templates.as_dict(), lemmatiser, self.language]
        digest = hashlib.blake2b(json.dumps(made_of).encode(), digest_size=8).hexdigest()
        if digest != self.manifest.digest:
            rows, weights = self.log.triples()
            alive = np.isin(rows[:, 3], live)
            self._renew(rows[alive], weights[alive], templates, lemmatiser, digest)
        if not self.manifest.complete:
            self.manifest = replace(self.manifest, complete=True)
            write_manifest(self.folder, self.manifest)
        unnamed = [(name, sentence) for name, sentence in self.manifest.relations if name not in templates.sentences]
        self.report.without_sentence = tuple(name for name, _ in unnamed)

    def _live(self) -> set[int]:
        """The versions of files that count: of each the newest, and those before it until it was read to its end."""
        origins = (
            origin for entry in self._noted.entries() for origin in (entry.origin, *(() if entry.complete else entry.stale))
        )
        return {self.log.source(origin) for origin in origins}

    def _renew(
        self, rows: NDArray[np.int32], weights: NDArray[np.float32], templates: Templates, lemmatiser: str, digest: str
    ) -> None:
        is_label = rows[:, 1] == self.log.relations.index(LABEL) if LABEL in self.log.relations else np.zeros(len(rows), bool)
        labels = dict(rows[is_label][::-1, [0, 2]].tolist())  # the first label of a node comes last, and stays
        relations, triples = _canonical(rows[~is_label], self.log.relations, templates)
        if not len(triples):
            raise InvalidInput("the sources hold no fact: expected at least one triple. Look at <--columns> and <--language>.")
        keys = self.log.names
        used = np.zeros(len(keys), dtype=bool)
        used[triples[:, 0]] = used[triples[:, 2]] = True
        names = node_names(keys, labels, used.tolist())
        lemma = lemmas.lemmatiser(lemmatiser, self.language)
        self._tell_arranging(0.0)
        tables = arrange(names, triples, weights[~is_label], lemma, self._tell_arranging)
        folder = self.folder / f"tables-{digest}"
        shutil.rmtree(folder, ignore_errors=True)  # of a build that was killed here
        folder.mkdir()
        tables.save(folder)
        self.manifest = Manifest(
            tables=folder.name,
            nodes=tables.nodes,
            facts=len(tables),
            relations=tuple((name, templates.template(name).sentence) for name in relations),
            lemmatiser=lemmatiser,
            language=self.language,
            digest=digest,
            content=tables.digest,
            complete=True,
        )
        write_manifest(self.folder, self.manifest)
        for other in self.folder.glob("tables-*"):  # those that were in force, and what kills left over
            if other != folder:
                shutil.rmtree(other, ignore_errors=True)

    def _report_progress(self, read: int) -> None:
        if self.on_progress:
            self.on_progress(GraphProgress("reading", self.bytes_done + read, self.total, self.report.read))

    def _tell_arranging(self, share: float) -> None:
        if self.on_progress:
            self.on_progress(GraphProgress("arranging", share, 1.0, self.report.read))


def _reached(entry: Entry, line: Line, passages: int, invalid: int, empty: int) -> Entry:
    return replace(entry, checkpoint=line.checkpoint, passages=passages, invalid=invalid, empty=empty)


def _canonical(rows: NDArray[np.int32], names: Sequence[str], templates: Templates) -> tuple[list[str], NDArray[np.int32]]:
    """Relations that are in use after merging, and the (rows, 3) triples with their numbers."""
    numbers: dict[str, int] = {}
    target = np.zeros(len(names), dtype=np.int32)
    exchanged = np.zeros(len(names), dtype=bool)
    for number in np.unique(rows[:, 1]).tolist():
        relation, exchanged[number] = templates.merged.get(names[number], (names[number], False))
        target[number] = numbers.setdefault(relation, len(numbers))
    swap = exchanged[rows[:, 1]]
    heads = np.where(swap, rows[:, 2], rows[:, 0])
    tails = np.where(swap, rows[:, 0], rows[:, 2])
    return list(numbers), np.stack([heads, target[rows[:, 1]], tails], axis=1)
