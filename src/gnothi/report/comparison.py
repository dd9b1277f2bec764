"""Methods beside each other on the same questions: never, always and oracle; searching too much or too little; paired tests."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import combinations
from typing import Any

from gnothi.calibration.ends import ByMethod, always_of, never_of
from gnothi.metrics import METRICS
from gnothi.runs.rows import Row, scored
from gnothi.stats.intervals import mean
from gnothi.stats.paired import holm, paired_test

_ALL_PAIRS = 6
"""With more methods than this, each is tested against never and always only."""


def beside(name: str, by_method: ByMethod, trusting: Collection[str] = ()) -> dict[str, Any] | None:
    """The method between never retrieving and always retrieving, over the questions that all of them answered.

    ``oracle`` takes the better of never and always for each question, with the cheaper one's retrieval where both are equal.
    None for never and always themselves, and where the run holds neither.
    """
    never, always = never_of(by_method, trusting), always_of(by_method)
    if name in (never, always) or not (never or always):
        return None
    tables = {
        role: scored(by_method[given]) for role, given in (("never", never), ("always", always), ("method", name)) if given
    }
    common = [question for question in tables["method"] if all(question in table for table in tables.values())]
    result: dict[str, Any] = {"n": len(common), "never": never, "always": always}
    for metric in METRICS:
        values = {role: [table[question].metrics[metric] for question in common] for role, table in tables.items()}
        if never and always:
            values["oracle"] = [max(pair) for pair in zip(values["never"], values["always"], strict=True)]
        result[metric] = {role: mean(column) for role, column in values.items()}
    retrieved = {role: [table[question].retrieved for question in common] for role, table in tables.items()}
    if never and always:
        em = [[tables[role][question].metrics["em"] for question in common] for role in ("never", "always")]
        retrieved["oracle"] = [always_em > never_em for never_em, always_em in zip(*em, strict=True)]
    result["retrieval_rate"] = {role: mean(column) for role, column in retrieved.items()}
    return result


def search_errors(name: str, by_method: ByMethod, trusting: Collection[str] = ()) -> dict[str, Any] | None:
    """``over_search``: retrieved although the closed-book answer was right; ``under_search``: did not although it was wrong.

    Right is by exact match. Each with its number, its share of all questions, and its rate among the questions where it could
    happen. None without closed-book rows and for those themselves.
    """
    never = never_of(by_method, trusting)
    if never is None or name == never:
        return None
    closed, own = scored(by_method[never]), [row for row in by_method[name] if not row.failed]
    known = [(row.retrieved, closed[row.question_id].metrics["em"] >= 1) for row in own if row.question_id in closed]
    over = [retrieved for retrieved, right in known if right]
    under = [not retrieved for retrieved, right in known if not right]
    return {
        "n": len(known),
        "closed_book": never,
        "metric": "em",
        **{
            label: {"count": sum(cases), "share": sum(cases) / len(known) if known else None, "rate": mean(cases)}
            for label, cases in (("over_search", over), ("under_search", under))
        },
    }


def paired_tests(by_method: ByMethod, trusting: Collection[str] = ()) -> list[dict[str, Any]]:
    """Every two methods, on the questions both answered, in every metric. ``p`` is two-sided; ``p_holm`` is it corrected for
    the number of tests in that metric."""
    pairs = list(combinations(by_method, 2))
    if len(by_method) > _ALL_PAIRS:
        references = {never_of(by_method, trusting), always_of(by_method)} & set(by_method) or {next(iter(by_method))}
        pairs = [pair for pair in pairs if references & set(pair)]
    return paired({name: scored(rows) for name, rows in by_method.items()}, pairs)


def paired(tables: Mapping[str, Mapping[str, Row]], pairs: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
    """First less second of each of the ``pairs`` of names, in every metric, of rows by name and question id.

    Pairs that share no question are left out, and ``p_holm`` is corrected for the number of those that do."""
    found: list[dict[str, Any]] = []
    for first, second in pairs:
        common = [question for question in tables[first] if question in tables[second]]
        for metric in METRICS if common else ():
            one, other = ([tables[name][question].metrics[metric] for question in common] for name in (first, second))
            test = paired_test(one, other)
            found.append({"first": first, "second": second, "metric": metric, **test._asdict()})
    for metric in METRICS:
        family = [entry for entry in found if entry["metric"] == metric]
        for entry, corrected in zip(family, holm([entry["p"] for entry in family]).tolist(), strict=True):
            entry["p_holm"] = corrected
    return found
