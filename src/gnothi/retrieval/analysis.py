"""How text becomes terms, and how a document is laid out in the index. Changing either changes ``FORMAT_VERSION``.

Words of plain Latin text are terms of one field. A second one holds those words alone that the analyser of the first would
spoil: of other scripts, long ones, and what the normal form of a text changes (``retrieval.scripts``). It is filled up with one
term that nobody can ask for, as often as there are plain words: BM25 weighs a passage's length against the mean of a field.

An index of ``fields`` best has such a pair for the title and one for the text, each with statistics of its own.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from math import log
from typing import Literal, get_args

import tantivy

from gnothi.errors import InvalidSetting
from gnothi.retrieval import scripts
from gnothi.retrieval.filters import Filters
from gnothi.retrieval.languages import DEFAULT, stemmer
from gnothi.retrieval.terms import key_of, key_term, terms
from gnothi.types import NO_METADATA, Metadata, Passage

FORMAT_VERSION = 3
ID, ORIGIN = "id", "origin"
# One field holds title and text as two values: BM25 sees one document of title + text, and the store keeps them apart.
BODY, UNITS = "body", "units"
Fields = Literal["cross", "best"]
"""How title and text count: as one field; or each has a score of its own, of which the better counts whole and the other half,
as in BEIR's BM25Search (multi_match, best_fields): so the authors of SeaKR, KEQA, DRAGIN and FLARE search."""
TIE_BREAKER = 0.5
PAIRS: dict[Fields, tuple[tuple[str, str], ...]] = {
    "cross": ((BODY, UNITS),),
    "best": (("title", "title_units"), ("text", "text_units")),
}
"""The fields of plain and of other words, of what is scored together."""
# Metadata as it is, to be shown, and as terms, to be filtered by: ranges over a JSON field need the parser of queries.
METADATA, TERMS = "metadata", "terms"
_FILLER = ". "
_MICRO, _MU = "\u00b5", "\u03bc"
"""Of one look; in the first field stands what was written, in the second one mu."""
_NO_STOP_WORDS = ("", "romanian", "turkish")
"""Of which tantivy has no list."""
_SHARED_STEMMERS = ("russian", "greek", "arabic", "tamil")
"""Each leaves the words of other scripts as they are."""


def as_fields(value: str) -> Fields:
    """Raises InvalidSetting for what is none."""
    for one in get_args(Fields):
        if value == one:
            return one  # type: ignore[no-any-return]
    raise InvalidSetting(f"fields of an index: got {value!r:.40}, expected one of {', '.join(get_args(Fields))}.")


def analyser(language: str = DEFAULT, fields: Fields = "cross") -> tantivy.TextAnalyzer:
    """Of plain words. In a field of titles words like "of" are rare: they are left out of ``best``, as the servers' analysers
    of a language do."""
    first = [tantivy.Filter.remove_long(41)]
    if fields == "best" and stemmer(language) not in _NO_STOP_WORDS:
        first += [tantivy.Filter.lowercase(), tantivy.Filter.stopword(stemmer(language))]
    return _chain(tantivy.Tokenizer.simple(), first, stemmer(language))


def register(index: tantivy.Index, language: str = DEFAULT) -> None:
    """Tantivy keeps the analyser's name only, so every opened index needs this."""
    for fields in PAIRS:
        index.register_tokenizer(_name(language, fields), analyser(language, fields))


def schema(language: str = DEFAULT, fields: Fields = "cross") -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field(ID, stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field(ORIGIN, stored=True, tokenizer_name="raw", index_option="basic")
    for words, units in PAIRS[fields]:
        builder.add_text_field(words, stored=True, tokenizer_name=_name(language, fields), index_option="freq")
        builder.add_text_field(units, tokenizer_name="whitespace", index_option="freq")
    builder.add_bytes_field(METADATA, stored=True, indexed=False)
    builder.add_text_field(TERMS, tokenizer_name="raw", index_option="basic")
    return builder.build()


def document(passage: Passage, origin: str, language: str = DEFAULT, fields: Fields = "cross") -> tantivy.Document:
    """``origin`` names the version of the source a passage came from, so that all of it can be deleted at once."""
    doc = tantivy.Document()
    doc.add_text(ID, passage.id)
    doc.add_text(ORIGIN, origin)
    scored = [[passage.title, passage.text]] if fields == "cross" else [[passage.title], [passage.text]]
    for (words, units), texts in zip(PAIRS[fields], scored, strict=True):
        for text in texts:
            doc.add_text(words, text)
        doc.add_text(units, _units(" ".join(texts), language, fields))
    if passage.metadata:
        doc.add_bytes(METADATA, passage.known.packed.encode())
        for term in terms(passage.metadata):
            doc.add_text(TERMS, term)
    return doc


def passage(doc: tantivy.Document) -> Passage:
    """Raises ValueError where the index keeps no passages, or others."""
    try:
        title, text = doc.get_all(BODY) or (one for words, _ in PAIRS["best"] for one in doc.get_all(words))
        (name, *_) = doc[ID]
        stored = doc.get_first(METADATA)
        return Passage(name, text, title, Metadata.unpacked(stored) if stored else NO_METADATA)
    except (LookupError, TypeError, ValueError):
        raise ValueError("a passage without its id, title or text, or with broken metadata") from None


def unpacked(stored: bytes | str | None) -> Metadata:
    """From a store that others may write to: nothing stored is none. Raises ValueError or TypeError for what are none."""
    return Metadata(json.loads(stored)) if stored else NO_METADATA


def among(index: tantivy.Index, matching: tantivy.Query, filters: Filters) -> tantivy.Query:
    """The query, restricted to passages that pass all filters; scores stay what they are."""
    clauses = [(tantivy.Occur.Must, matching)]
    for condition in filters:
        spans = tantivy.Query.boolean_query([(tantivy.Occur.Should, _span(index, *span)) for span in condition.spans])
        if condition.negated:
            clauses.append((tantivy.Occur.MustNot, spans))
            spans = _span(index, *[key_term(condition.key)] * 2)
        clauses.append((tantivy.Occur.Must, tantivy.Query.boost_query(spans, 0.0)))
    return tantivy.Query.boolean_query(clauses)


def _span(index: tantivy.Index, low: str, high: str) -> tantivy.Query:
    """Terms between two. They are letters and digits alone, and the parser, which alone makes ranges of text, reads them so."""
    if low == high:
        return tantivy.Query.term_query(index.schema, TERMS, low, "basic")
    return index.parse_query(f"{TERMS}:[{low} TO {high}]")


def keys(searcher: tantivy.Searcher) -> list[str]:
    """Of the metadata of all passages."""
    entries = searcher.terms_with_prefix(TERMS, key_term(""))
    return sorted(key_of(term) for term, _ in entries)


def query(
    searcher: tantivy.Searcher, index_schema: tantivy.Schema, text: str, language: str, fields: Fields = "cross"
) -> tantivy.Query | None:
    """Any of the terms, each counted as often as it occurs; None where there is none. Built from terms, never parsed:
    no text is a syntax error."""
    plain, units = _query_terms(text, language, fields)
    queries = [one for names in PAIRS[fields] if (one := _any_of(plain, units, names, searcher, index_schema)) is not None]
    return queries[0] if len(queries) == 1 else tantivy.Query.disjunction_max_query(queries, TIE_BREAKER) if queries else None


def _any_of(
    plain: list[str], units: list[str], names: tuple[str, str], searcher: tantivy.Searcher, index_schema: tantivy.Schema
) -> tantivy.Query | None:
    """Of the terms, in the two fields of that name."""
    words, others = names
    wanted = [(words, term, float(count)) for term, count in Counter(plain).items()]
    for term, count in Counter(units).items():
        # A clause that finds nothing would cost the engine its short cuts.
        if rare := searcher.doc_freq(others, term):
            # A plain word is as rare as both fields say.
            among = rare + (searcher.doc_freq(words, term) if term in plain else 0)
            wanted.append((others, term, count * _rarity(among, searcher.num_docs) / _rarity(rare, searcher.num_docs)))
    clauses = []
    for field, term, weight in wanted:
        clause = tantivy.Query.term_query(index_schema, field, term, "freq")
        clauses.append(clause if weight == 1 else tantivy.Query.boost_query(clause, weight))
    if not plain and all(map(scripts.room, units)):  # a single character of Chinese, say: part of longer units
        patterns = {f".{{0,{scripts.room(unit)}}}{unit}.{{0,{scripts.room(unit)}}}" for unit in units}
        clauses += [tantivy.Query.regex_query(index_schema, others, pattern) for pattern in sorted(patterns)]
    return tantivy.Query.boolean_query([(tantivy.Occur.Should, clause) for clause in clauses]) if clauses else None


def all_of(index_schema: tantivy.Schema, phrases: Sequence[str], language: str, fields: Fields = "cross") -> tantivy.Query:
    """Every term of all phrases, in any field of words; all passages have the same score."""
    terms = {term for phrase in phrases for term in _query_terms(phrase, language, fields)[1]}
    names = [name for pair in PAIRS[fields] for name in pair]
    each = [
        tantivy.Query.boolean_query(
            [(tantivy.Occur.Should, tantivy.Query.term_query(index_schema, name, term, "basic")) for name in names]
        )
        for term in sorted(terms)
    ]
    return tantivy.Query.const_score_query(
        tantivy.Query.boolean_query([(tantivy.Occur.Must, one) for one in each]) if each else tantivy.Query.all_query(), 1.0
    )


def words(text: str, language: str) -> list[str]:
    """The stems of a text in order, of every script; for comparing, not for looking up."""
    return [*_units_analyser(language).analyze(" ".join(scripts.units(text)))]


def holds(passage: Passage, phrases: Sequence[Sequence[str]], language: str) -> bool:
    """Whether each of these ``words`` stands in title or text as it is."""
    read = [f" {' '.join(words(text, language))} " for text in (passage.title, passage.text)]
    return all(any(f" {' '.join(phrase)} " in text for text in read) for phrase in phrases)


def _rarity(having: int, passages: int) -> float:
    """Of a term that so many passages have, in BM25. Deleted passages count in ``having`` until they are merged away."""
    return log(1 + (max(passages - having, 0) + 0.5) / (having + 0.5))


def _units(text: str, language: str, fields: Fields = "cross") -> str:
    """The second field's terms with spaces between them."""
    special, others = scripts.special_tokens(text)
    broken = scripts.broken(text)
    if not special and not broken:
        return _FILLER * others
    tokens = " ".join(special)
    terms = _units_analyser(language).analyze(" ".join(scripts.units(tokens, mixed=len(special) > others))) if special else []
    if any(map(str.isascii, terms)):
        right = {*_body_analyser(language, fields).analyze(tokens)}  # in the first field they are what they should be
        terms = [term for term in terms if not (term.isascii() and term in right)]
    terms += _units_analyser(language).analyze(" ".join(broken))
    return _FILLER * others + " ".join(terms)


def _query_terms(text: str, language: str, fields: Fields = "cross") -> tuple[list[str], list[str]]:
    """A question's terms in either field."""
    text = scripts.normal(text)
    if not scripts.special_tokens(text)[0]:
        plain = _body_analyser(language, fields).analyze(text)
        return plain, [term.replace(_MICRO, _MU) for term in plain]
    units = scripts.units(text)
    words = [unit.replace(_MU, _MICRO) for unit in units]
    plain = _body_analyser(language, fields).analyze(" ".join(word for word in words if not scripts.is_special(word)))
    return plain, _units_analyser(language).analyze(" ".join(units))


@lru_cache
def _body_analyser(language: str, fields: Fields) -> tantivy.TextAnalyzer:
    return analyser(language, fields)


@lru_cache
def _units_analyser(language: str) -> tantivy.TextAnalyzer:
    return _chain(tantivy.Tokenizer.whitespace(), [], stemmer(language), *_SHARED_STEMMERS)


def _chain(tokenizer: tantivy.Tokenizer, first: list[tantivy.Filter], *stemmers: str) -> tantivy.TextAnalyzer:
    builder = tantivy.TextAnalyzerBuilder(tokenizer)
    stems = [tantivy.Filter.stemmer(one) for one in stemmers if one]
    for step in (*first, tantivy.Filter.lowercase(), tantivy.Filter.ascii_fold(), *stems):
        builder = builder.filter(step)
    return builder.build()


def _name(language: str, fields: Fields) -> str:
    return f"gnothi_{stemmer(language) or 'no_stems'}{'' if fields == 'cross' else f'_{fields}'}"
