"""What ``--model SCHEME:ARGUMENT`` opens: one file per kind of model, called by the scheme's name."""
