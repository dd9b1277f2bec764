"""Gnothi: retrieval-augmented generation that knows what it knows."""

__version__ = "0.1.0"
