"""As a program, ``gnothi ...`` that stops after each line it keeps, to be killed there."""

from __future__ import annotations

from gnothi.cli.main import main
from gnothi.runs.journal import Journal
from tests.stopping import stops_after

if __name__ == "__main__":
    stops_after(Journal, "append")
    main()
