"""A row of a recipe as it would be run in earnest, with resources of a test's choice in place of the paper's."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from gnothi import methods
from gnothi.methods.planned import PlannedMethod
from gnothi.protocols import Method
from gnothi.reproduce import recipe
from gnothi.reproduce.parts import Job
from gnothi.reproduce.work import check
from gnothi.session.plan import Plan


@cache
def plans(name: str, data: str) -> dict[str, Plan]:
    """By label, the rows of the recipe on one data set."""
    job = Job(recipe=recipe.read(name), out=Path("out"), data=Path("data"), only=(data,))
    (planned,) = check(job)
    return dict(planned.plans)


def row(name: str, data: str, label: str) -> PlannedMethod:
    (method,) = plans(name, data)[label].methods
    return method


def made(name: str, data: str, label: str, **resources: Any) -> Method:
    """The row's method with its settings of the recipe; models that the recipe names beside the main one are left out."""
    planned = row(name, data, label)
    values = {key: value for key, value in planned.values.items() if key not in planned.spec.optional}
    return methods.make(planned.name, resources, values)
