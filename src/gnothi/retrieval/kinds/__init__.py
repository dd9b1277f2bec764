"""What ``--index SCHEME:ARGUMENT`` opens: one file per scheme, called by its name."""
