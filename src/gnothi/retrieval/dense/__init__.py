"""Passages found by vectors: an index's dense part, how it is made and searched."""
