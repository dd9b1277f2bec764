"""``gnothi index ...``, which stops after each batch of passages and each commit of them; run as a program, to be interrupted
there."""

from __future__ import annotations

import sys

from gnothi.cli import main
from gnothi.retrieval import build
from tests.stopping import stops_after

if __name__ == "__main__":
    build._COMMIT_BYTES = 60_000
    stops_after(build._Build, "_put", "_commit")
    main.main(["index", *sys.argv[1:]])
