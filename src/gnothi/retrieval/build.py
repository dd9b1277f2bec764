"""From sources to an index: idempotent, resumable, bounded in memory.

The same command run twice reads nothing twice; run after a kill it goes on where the last commit was; run after a file changed
it replaces that file's passages, of which those that are gone stay until the new ones are complete.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path

from gnothi.errors import MALFORMED, IndexUnavailable, InvalidInput, InvalidSetting, counted, malformation
from gnothi.retrieval import left_out
from gnothi.retrieval.analysis import as_fields
from gnothi.retrieval.folder import disk_errors
from gnothi.retrieval.ingest.base import START, Step, Unreadable
from gnothi.retrieval.ingest.corpora import AS_FOUND, Keys
from gnothi.retrieval.ingest.discover import SourceFile, Survey, nothing_found, survey
from gnothi.retrieval.ingest.formats import FORMATS, reader
from gnothi.retrieval.ingest.split import DEFAULT_WORDS, LANGUAGE, SPLIT_VERSION
from gnothi.retrieval.languages import DEFAULT, Sample, code, named
from gnothi.retrieval.ledger import Entry, plain
from gnothi.retrieval.left_out import LeftOut
from gnothi.retrieval.sources import SourceReader, SourcesReport, unreadable
from gnothi.retrieval.targets import Target, check_built, target
from gnothi.retrieval.writer import DEFAULT_MEMORY_MB
from gnothi.types import Metadata, Passage

BATCH = 200
"""Passages that are handed to an index together."""
_COMMIT_BYTES = 64_000_000
_COMMIT_SECONDS = 20.0


@dataclass(slots=True)
class BuildReport(SourcesReport):
    """What a build did.

    ``passages`` counts the whole index, ``added`` the new or changed ones of this run, ``replaced`` those that took the place
    of another passage of the same id, from another file or the same.
    """

    passages: int = 0
    added: int = 0
    replaced: int = 0


@dataclass(frozen=True, slots=True)
class Progress:
    """``bytes_done`` of ``bytes_total`` read or found unchanged; ``passages`` handled in this run."""

    bytes_done: int
    bytes_total: int
    passages: int


def build(
    sources: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    words: int = DEFAULT_WORDS,
    skip_invalid: bool = False,
    memory_mb: int = DEFAULT_MEMORY_MB,
    text_key: str = "",
    title_key: str = "",
    id_key: str = "",
    language: str = "",
    fields: str = "",
    keep_missing: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
) -> BuildReport:
    """Index ``sources`` (files and folders) into the folder ``out``, which is made or added to, or into what
    ``SCHEME:ARGUMENT`` names. What cannot be read in a folder is left out and reported. What was read from files that are gone
    from the sources leaves the index, unless ``keep_missing``; what was read elsewhere stays.

    ``words`` is the length of a passage, 0 for never cutting. ``text_key``, ``title_key`` and ``id_key`` name the keys of
    records; empty, they are found by each file's first record. ``language`` is that of Latin words, of
    ``retrieval.languages``: of a new index English, of another its own; ``fields`` says how title and text count
    (``retrieval.analysis.Fields``: of a new index cross). Raises InvalidInput for a named file or a record in it
    that cannot be used (``skip_invalid`` leaves out records), and where a first build finds no file,
    IndexUnavailable when it cannot be written. An interrupt keeps what was read.
    """
    if words < 0:
        raise InvalidSetting(f"words of a passage: got {words}, expected 1 or more, or 0 for never cutting.")
    opening = target(out, memory_mb, language and named(language), fields and as_fields(fields))
    here = Path(out)
    there = survey(sources, here, FORMATS)
    if there.is_empty:
        try:
            check_built(out)
        except IndexUnavailable:
            raise nothing_found(there, FORMATS) from None
    with opening as opened:
        keys = Keys(text_key, title_key, id_key)
        work = _Build(opened, words, keys, skip_invalid, there, os.fspath(out), keep_missing, on_progress)
        work.noted = [one for one in left_out.read(here) if one.read] if here.is_dir() else []
        report = work.run()
        if here.is_dir():
            with disk_errors(here):
                left_out.write(here, sources, [*work.left_out, *work.still_noted()])
        return report


class _Build(SourceReader[BuildReport]):
    def __init__(
        self,
        target: Target,
        words: int,
        keys: Keys,
        skip_invalid: bool,
        survey: Survey,
        out: str,
        keep_missing: bool,
        on_progress: Callable[[Progress], None] | None,
    ) -> None:
        settings = ":".join(map(str, (words, SPLIT_VERSION, *(astuple(keys) if keys != AS_FOUND else ()))))
        super().__init__(BuildReport(), target.ledger, settings, skip_invalid, survey, out, FORMATS, keep_missing)
        self.keys = keys
        self.writer = target.writer
        self.waiting: list[tuple[Passage, str]] = []  # with its origin
        self.words = words
        self.language = target.language
        self.sample = Sample()
        self.on_progress = on_progress
        self.handled = 0
        self.noted: list[LeftOut] = []  # of files that were read earlier

    def run(self) -> BuildReport:
        token = LANGUAGE.set(code(self.language or DEFAULT))
        try:
            self.read_all()
        except (InvalidInput, KeyboardInterrupt):
            self._commit(complete=False)
            raise
        finally:
            LANGUAGE.reset(token)
        if self.language and (doubt := self.sample.doubt(self.language)):
            self.report.notices.add(doubt)
        self._commit(complete=True)
        for key in self.repeating | self.lost.keys():
            if loser := self.ledger.by_key(key):
                for reason in [_REPEATS] * (key in self.repeating) + [_shares(*pair) for pair in self.lost[key].items()]:
                    self._notice(loser.path, reason)
        self.report.passages = self.writer.passages
        self.report.seconds = time.monotonic() - self.started
        return self.report

    def still_noted(self) -> Iterator[LeftOut]:
        """Notices on files that were not read again."""
        return (one for one in self.noted if self.ledger.by_path(one.path))

    def _put(self) -> None:
        outcomes = self.writer.put_all(self.waiting)
        waiting, self.waiting = self.waiting, []  # only now: an interrupt loses none
        for outcome, (_, origin) in zip(outcomes, waiting, strict=True):
            self.report.added += outcome != "standing"
            if outcome == "standing":
                self.note_standing(origin)
        pairs, self.writer.covered = self.writer.covered, Counter()
        self.report.replaced += self.note_shared(pairs)

    def _flush(self) -> None:
        self._put()

    def _drop(self, origin: str) -> None:
        self._put()
        self.writer.delete_origin(origin)

    def _read(self, source: SourceFile, entry: Entry) -> None:
        steps = _steps(source, entry, self.words, self.keys)
        path = plain(source.path)
        self.noted = [one for one in self.noted if one.path != path or (entry.again and one.reason == _REPEATS)]
        self.lost.pop(entry.key, None)
        if entry.checkpoint == START and entry.passages:
            self.current = replace(entry, passages=0)
        metadata = Metadata({"source": entry.key})
        read: list[Step] = []  # that the entry does not tell of yet
        try:
            for step in _read_ahead(steps) if entry.stale else steps:
                if step.invalid:
                    self._invalid(source, step)
                if step.notice:
                    self._notice(path, step.notice)
                for passage in step.passages:
                    named = Passage(passage.id, passage.text, passage.title, passage.known.filled(metadata))
                    self.waiting.append((named, entry.origin))
                    self.handled += 1
                    self.sample.look(passage.text)
                read.append(step)
                if len(self.waiting) >= BATCH:
                    self._put()
                due = self.writer.pending_bytes > _COMMIT_BYTES or time.monotonic() - self.last_commit > _COMMIT_SECONDS
                if due or len(read) >= BATCH:
                    self._reached(read)
                    read = []
                if due:
                    self._commit(complete=False)
                self._report_progress(step.read)
        finally:
            self._reached(read)

    def _reached(self, steps: Sequence[Step]) -> None:
        if steps and (entry := self.current) is not None:
            self.current = replace(
                entry,
                passages=entry.passages + sum(len(step.passages) for step in steps),
                invalid=entry.invalid + sum(bool(step.invalid) for step in steps),
                empty=entry.empty + sum(step.empty for step in steps),
                checkpoint=next((step.checkpoint for step in reversed(steps) if step.checkpoint), entry.checkpoint),
            )

    def _notice(self, path: str, text: str) -> None:
        self.report.notices.add(f"{path} {text}")
        self.leave_out(LeftOut(path, plain(text), unreadable=False, read=True))

    def _invalid(self, source: SourceFile, step: Step) -> None:
        line = step.checkpoint.line if step.checkpoint else 0
        problem = f"{source.path}, line {line}: {step.invalid}"
        if not self.skip_invalid:
            raise Unreadable(f"{problem}. Correct the line, or index all others with <--skip-invalid>.")
        self.report.invalid.show(problem)

    def _commit(self, complete: bool) -> None:
        """The index first, then the ledger: a kill between the two costs reading again, nothing else."""
        self._put()
        self.writer.commit(complete)
        self._save()

    def _report_progress(self, read: int) -> None:
        if self.on_progress:
            self.on_progress(Progress(self.bytes_done + read, self.total, self.handled))


def _steps(source: SourceFile, entry: Entry, words: int, keys: Keys) -> Iterator[Step]:
    try:
        yield from reader(source.path, keys)(source.path, entry.key, words, entry.checkpoint)
    except OSError as error:
        raise unreadable(source.path, error) from None
    except (RecursionError, MemoryError) as error:
        raise Unreadable(f"{source.path} cannot be read: {error or 'it needs too much memory'}. Leave it out.") from None
    except MALFORMED as error:
        raise Unreadable(
            f"{source.path} cannot be read: it is damaged ({malformation(error)}). Save it again, or leave it out."
        ) from None


_OTHER_IDS = "If they differ, change the ids, or name another column with <--id-key>."
_REPEATS = f"has passages of the same id: only the last of them is kept. {_OTHER_IDS}"


def _shares(winner: str, count: int) -> str:
    return f"has {counted(count, 'passage')} with an id that {winner} has too: only the latter is kept. {_OTHER_IDS}"


def _read_ahead(steps: Iterator[Step]) -> Iterator[Step]:
    """Of a document that was read before: only when all of it can be read does it take the place of what stands there."""
    held, size = [], 0
    for step in steps:
        held.append(step)
        size += sum(len(passage.text) for passage in step.passages)
        if step.checkpoint or size > _COMMIT_BYTES:
            break
    yield from held
    yield from steps
