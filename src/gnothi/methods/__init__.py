"""Ways of answering a question, one file each, by name.

from gnothi import methods
seakr = methods.create("seakr", {"model": model, "retriever": retriever}, {"threshold": -5.5})
answer = await seakr(question)
"""

from gnothi.methods.registry import Description, MethodSpec, check, create, describe, make, names, shared_settings, spec

__all__ = ["Description", "MethodSpec", "check", "create", "describe", "make", "names", "shared_settings", "spec"]
