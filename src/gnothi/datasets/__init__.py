"""Questions from files, one module per format."""

from gnothi.datasets.records import Format, Record, read_records
from gnothi.datasets.registry import FORMATS, Loader, load

__all__ = ["FORMATS", "Format", "Loader", "Record", "load", "read_records"]
