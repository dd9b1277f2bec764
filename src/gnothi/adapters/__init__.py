"""Gnothi inside other frameworks: one file for each, on top of ``gnothi.open``."""
