"""Passages in tables of LanceDB."""
