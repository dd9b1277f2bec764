"""Ways of answering a question, one file each, by name.

from gnothi import methods
seakr = methods.create("seakr", {"model": model, "retriever": retriever}, {"threshold": -5.5})
answer = await seakr(question)
"""

from gnothi.methods.registry import (
    Description,
    check,
    create,
    describe,
    find,
    gating_of,
    make,
    name_of,
    names,
    optional_resources,
    required_resources,
    resources_of,
    settings_of,
    shared_settings,
)

__all__ = [
    "Description",
    "check",
    "create",
    "describe",
    "find",
    "gating_of",
    "make",
    "name_of",
    "names",
    "optional_resources",
    "required_resources",
    "resources_of",
    "settings_of",
    "shared_settings",
]
