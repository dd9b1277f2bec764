"""Passages in tables of PostgreSQL."""
