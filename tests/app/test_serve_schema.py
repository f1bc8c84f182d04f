"""The API follows its OpenAPI description, for valid and invalid requests that schemathesis generates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, load_all_checks

from headscope.app.create import create_app
from headscope.app.limits import Limits
from headscope.models.model import Model
from headscope.results.results import Results

OPERATIONS = [
    ("GET", "/api/runs"),
    ("GET", "/api/runs/{name}"),
    ("GET", "/api/runs/{name}/tables"),
    ("GET", "/api/runs/{name}/tables/{table}"),
    ("GET", "/api/models"),
    ("GET", "/api/models/{name}"),
    ("POST", "/api/texts"),
    ("GET", "/api/texts/{id}/heads/{head}"),
    ("GET", "/api/texts/{id}/differences/{other}"),
    ("GET", "/api/texts/{id}/influence/{measure}"),
]
# Requests of other operations cannot be invalid: any text is a valid name.
CAN_BE_INVALID = [
    ("GET", "/api/runs/{name}/tables/{table}"),
    ("POST", "/api/texts"),
    ("GET", "/api/texts/{id}/heads/{head}"),
]
# A valid text may still name an unknown model, so valid data are not always accepted.
NAMES = ("not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance")
load_all_checks()
PROMISES = CHECKS.get_by_names([*NAMES, "response_headers_conformance", "unsupported_method"])


Listen = Callable[[Any, Limits], AbstractContextManager[int]]


@pytest.fixture(scope="module")
def described(results: Results, crossed: Results, bert: Model, t5: Model, listen: Listen) -> Iterator[Any]:
    with listen(create_app({"first": results, "crossed": crossed}, {"bert": bert, "t5": t5}), Limits()) as port:
        yield schemathesis.openapi.from_url(f"http://127.0.0.1:{port}/openapi.json")


def test_the_description_contains_exactly_the_tested_operations(described: Any) -> None:
    found = [(one.ok().method.upper(), one.ok().path) for one in described.get_all_operations()]
    assert sorted(found) == sorted(OPERATIONS)
    operations = {one: described[one[1]][one[0]] for one in OPERATIONS}
    assert [one for one, operation in operations.items() if operation.body or operation.query] == CAN_BE_INVALID


@pytest.mark.parametrize(
    ("mode", "method", "path"),
    [(GenerationMode.POSITIVE, *one) for one in OPERATIONS] + [(GenerationMode.NEGATIVE, *one) for one in CAN_BE_INVALID],
)
def test_answers_follow_the_description(described: Any, method: str, path: str, mode: GenerationMode) -> None:
    operation = described[path][method]

    @settings(
        max_examples=10, deadline=None, database=None, derandomize=True, phases=[Phase.generate], suppress_health_check=[*HealthCheck]
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        answer = case.call_and_validate(checks=PROMISES)
        assert answer.status_code < 500

    ask()
