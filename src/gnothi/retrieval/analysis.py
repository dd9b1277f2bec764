"""How text becomes terms, and how a document is laid out in the index. Changing either changes ``FORMAT_VERSION``."""

from __future__ import annotations

from collections import Counter

import tantivy

from gnothi.types import Passage

FORMAT_VERSION = 2
ANALYSER = "words, at most 40 letters, lower case, accents folded, English stems"
# One field holds title and text as two values: BM25 sees one document of title + text, and the store keeps them apart.
ID, ORIGIN, BODY = "id", "origin", "body"
_ANALYSER_NAME = "gnothi_english"


def analyser() -> tantivy.TextAnalyzer:
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    for step in (
        tantivy.Filter.remove_long(41),
        tantivy.Filter.lowercase(),
        tantivy.Filter.ascii_fold(),
        tantivy.Filter.stemmer("english"),
    ):
        builder = builder.filter(step)
    return builder.build()


def register(index: tantivy.Index) -> None:
    """Tantivy keeps the analyser's name only, so every opened index needs this."""
    index.register_tokenizer(_ANALYSER_NAME, analyser())


def schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field(ID, stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field(ORIGIN, stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field(BODY, stored=True, tokenizer_name=_ANALYSER_NAME, index_option="freq")
    return builder.build()


def document(passage: Passage, origin: str) -> tantivy.Document:
    """``origin`` names the version of the source a passage came from, so that all of it can be deleted at once."""
    doc = tantivy.Document()
    doc.add_text(ID, passage.id)
    doc.add_text(ORIGIN, origin)
    doc.add_text(BODY, passage.title)
    doc.add_text(BODY, passage.text)
    return doc


def passage(doc: tantivy.Document) -> Passage:
    """Raises ValueError where the index keeps no passages, or others."""
    try:
        (title, text), (name, *_) = doc[BODY], doc[ID]
    except (LookupError, TypeError, ValueError):
        raise ValueError("a passage without its id, title or text") from None
    return Passage(name, text, title)


def query(index_schema: tantivy.Schema, terms: list[str]) -> tantivy.Query:
    """Any of the terms, each counted as often as it occurs. Built from terms, never parsed: no text is a syntax error."""
    clauses = []
    for term, count in Counter(terms).items():
        clause = tantivy.Query.term_query(index_schema, BODY, term, "freq")
        clauses.append((tantivy.Occur.Should, clause if count == 1 else tantivy.Query.boost_query(clause, float(count))))
    return tantivy.Query.boolean_query(clauses)
