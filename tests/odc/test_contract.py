"""The client agrees with /openapi.json: operations, parameters, and the fields of answers."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any
from unittest.mock import MagicMock

import msgspec
import pytest

from odc import models
from odc.async_client import AsyncClient, AsyncJob
from odc.calls import OPERATIONS, Operation
from odc.client import Client, Job
from odcd.api.app import operations
from odcd.api.http.openapi import document

Json = dict[str, Any]
DOCUMENT = document(operations(MagicMock()))
SCHEMAS: Json = DOCUMENT["components"]["schemas"]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_every_operation_exists_with_its_parameters(operation: Operation[Any]) -> None:
    described = DOCUMENT["paths"][operation.path][operation.method.lower()]
    assert described["operationId"] == operation.id
    parameters = described["parameters"]
    queries = {one["name"] for one in parameters if one["in"] == "query"}
    assert set(operation.query) <= queries
    keyed = any(one["name"] == "Idempotency-Key" for one in parameters)
    assert operation.keyed == keyed
    # A request that creates something is repeated only with a key.
    assert operation.method == "GET" or operation.keyed or operation.path in REPEATABLE
    if operation.body:
        body = described["requestBody"]["content"]["application/json"]["schema"]
        assert set(operation.body) <= set(_named(body)["properties"])


REPEATABLE = ("/v1/jobs/cancel", "/v1/jobs/hold", "/v1/jobs/release", "/v1/jobs/requeue")


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_every_answer_has_the_fields_of_its_model(operation: Operation[Any]) -> None:
    if operation.answer is bytes:
        return
    described = DOCUMENT["paths"][operation.path][operation.method.lower()]
    answers = [
        schema["$ref"].rpartition("/")[2]
        for response in described["responses"].values()
        for content in response.get("content", {}).values()
        for schema in content["schema"].get("anyOf", [content["schema"]])
    ]
    assert operation.answer.__name__ in answers
    for mine, theirs in _pairs(operation.answer.__name__):
        _check(mine, theirs)


def test_a_job_spec_has_only_fields_that_the_daemon_accepts() -> None:
    [mine], components = msgspec.json.schema_components(
        [models.JobSpec], ref_template="#/components/schemas/{name}"
    )
    mine = components[mine["$ref"].rpartition("/")[2]]
    theirs = SCHEMAS["JobSpec"]
    assert set(mine["properties"]) <= set(theirs["properties"])
    assert set(mine["required"]) == set(theirs["required"])
    for name, schema in mine["properties"].items():
        # A default that is not sent must be the daemon's.
        assert schema.get("default") == theirs["properties"][name].get("default"), name
        assert _types(schema) == _types(theirs["properties"][name]), name


def test_the_asynchronous_client_has_the_same_methods_and_arguments() -> None:
    for sync, other in ((Client, AsyncClient), (Job, AsyncJob)):
        assert _signatures(sync) == _signatures(other)


def _signatures(of: type) -> dict[str, list[str]]:
    return {
        name: list(inspect.signature(member).parameters)
        for name, member in vars(of).items()
        if callable(member) and not name.startswith("_")
    }


def _pairs(name: str) -> Iterator[tuple[Json, Json]]:
    """The model and the schema of this name, and of all that they contain."""
    model: type[msgspec.Struct] = getattr(models, name)
    _, components = msgspec.json.schema_components(
        [model], ref_template="#/components/schemas/{name}"
    )
    for one, mine in components.items():
        yield {**mine, "title": one}, SCHEMAS[one]


def _check(mine: Json, theirs: Json) -> None:
    name = mine["title"]
    for field, schema in mine["properties"].items():
        assert field in theirs["properties"], f"{name}.{field}"
        other = theirs["properties"][field]
        if field in mine.get("required", ()):
            assert field in theirs.get("required", ()) or name == "Outcome", f"{name}.{field}"
        # The model accepts everything that the daemon may send.
        assert _types(other) <= _types(schema), f"{name}.{field}"


def _types(schema: Json) -> set[str]:
    if "anyOf" in schema:
        return set[str]().union(*map(_types, schema["anyOf"]))
    if "$ref" in schema:
        return {schema["$ref"]}
    if "enum" in schema:
        return {"null" if value is None else _TYPES[type(value)] for value in schema["enum"]}
    return {schema.get("type", "any")}


_TYPES = {str: "string", int: "integer", bool: "boolean"}


def _named(schema: Json) -> Json:
    return SCHEMAS[schema["$ref"].rpartition("/")[2]]
