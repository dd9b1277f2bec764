"""Programs for those who develop Gnothi; no part of the package."""
