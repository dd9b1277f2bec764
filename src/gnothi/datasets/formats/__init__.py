"""Formats of files of questions, one file each."""
