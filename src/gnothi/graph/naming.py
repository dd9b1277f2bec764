"""What nodes are called: names as they are, IRIs by their labels or their ends. Two nodes never have one name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gnothi.graph.readers.ntriples import local_name


def called(keys: Sequence[str], labels: Mapping[int, int], used: Sequence[bool]) -> list[str]:
    """The names of nodes from how they were read. ``labels`` gives for a node the one whose text it is called by;
    ``used`` tells the nodes that have facts from those that are labels only.

    An IRI whose name is taken has itself added in brackets, which linking does not ask a text to say: "Paris (http://...)".
    """
    if not labels and not any(_is_iri(key) for key in keys):
        return list(keys)
    taken = {key for key, real in zip(keys, used, strict=True) if real and not _is_iri(key)}
    names = []
    for number, key in enumerate(keys):
        if not _is_iri(key) or not used[number]:
            names.append(key)
            continue
        iri = key[1:-1]
        name = keys[labels[number]] if number in labels else local_name(iri)
        while name in taken:
            name = f"{name} ({iri})"
        taken.add(name)
        names.append(name)
    return names


def _is_iri(key: str) -> bool:
    return key.startswith("<") and key.endswith(">") and len(key) > 2
