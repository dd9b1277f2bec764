"""The signals that come along, one file each, called by the signal's name."""
