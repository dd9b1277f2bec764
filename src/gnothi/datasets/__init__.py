"""Questions: named data sets, and files, one module per format."""

from gnothi.datasets.records import Format, Record, read_records
from gnothi.datasets.registry import (
    DATASETS,
    FORMATS,
    DataSet,
    data_sets,
    file_formats,
    formats_listed,
    is_named,
    load,
    load_unanswered,
)

__all__ = [
    "DATASETS",
    "FORMATS",
    "DataSet",
    "Format",
    "Record",
    "data_sets",
    "file_formats",
    "formats_listed",
    "is_named",
    "load",
    "load_unanswered",
    "read_records",
]
