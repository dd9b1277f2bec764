"""The version, in a module of its own, so that everything may know it."""

__version__ = "0.3.0"
