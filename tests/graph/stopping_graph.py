"""As a program, a build of a graph that stops after each step, to be killed there: OUT SOURCE..."""

from __future__ import annotations

import sys

from gnothi.graph import building
from gnothi.graph.lemmas import PLURALS
from tests.stopping import stops_after


def main(out: str, *sources: str) -> None:
    # Few lines between commits, so that a kill can fall before, between, inside and after them.
    building._COMMIT_SECONDS, building._TELL_EVERY = -1.0, 256
    stops_after(building._Build, "_report_progress", "_commit", "_tell_arranging")
    building.build_graph(sources, out, lemmatiser=PLURALS)


if __name__ == "__main__":
    main(*sys.argv[1:])
