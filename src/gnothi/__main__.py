"""``python -m gnothi`` is the command ``gnothi``."""

from gnothi.cli.main import main

main()
