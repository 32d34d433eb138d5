"""/openapi.json, generated from the table of operations and their structs, and /docs."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import msgspec
from starlette.responses import Response

from odcd import __version__
from odcd.api.http.docs import page
from odcd.api.http.examples import example_of
from odcd.api.http.operation_ids import operation_id
from odcd.api.http.problems import MEDIA_TYPE as PROBLEM_TYPE
from odcd.api.http.problems import Problem
from odcd.api.http.routing import JSON, Call, Operation

NO_CONTENT = 204
REF = "#/components/schemas/{name}"
DESCRIPTION = (
    "odc schedules GPUs: one queue, one plan. On the daemon's machine, use its Unix socket, "
    "where the kernel identifies you; over TCP, send an API key as a bearer token. Errors are "
    "application/problem+json with an OD code, the cause and a hint."
)
Json = dict[str, Any]
Form = type[msgspec.Struct]
_PATH_PART = re.compile(r"{(\w+)}")
_PARTS = {
    "id": "A job 7, an array's task 7_3, or several 7_[1-4,9].",
    "name": "A node.",
    "booking": "A booking's name.",
    "disk": "A disk's name.",
    "licence": "A licence's name.",
    "partition": "A partition's name.",
    "policy": "A policy's name.",
    "account": "An account's name.",
    "qos": "A QOS's name.",
    "user": "A user's name.",
    "job": "A job's id.",
    "attempt": "Which run of the job: 1, and one more after each requeue.",
    "step": "The number of a step.",
    "command": "The name of a command of Slurm, such as squeue.",
    "digest": "The digest of a context, as returned by POST /v1/builds.",
}


def _parameter(name: str, where: str, schema: Json, *, required: bool, about: str) -> Json:
    return {
        "name": name,
        "in": where,
        "required": required,
        "schema": schema,
        "description": about,
    }


def _path_parameter(name: str) -> Json:
    return _parameter(name, "path", {"type": "string"}, required=True, about=_PARTS[name])


_KEY = _parameter(
    "Idempotency-Key",
    "header",
    {"type": "string", "minLength": 1, "maxLength": 200},
    required=False,
    about="If a request is repeated with the same key, it has an effect only once.",
)
_BYTES: Json = {"type": "string", "format": "binary"}
_ATTACH = {
    "get": {
        "summary": "The terminal of a job submitted with a pty, over a WebSocket",
        "description": (
            'Binary frames in both directions; {"resize": [rows, cols]} as text from the client; '
            'at the end {"exit_code": …, "signal": …} as text from the server.'
        ),
        "tags": ["jobs"],
        "parameters": [_path_parameter("id")],
        "responses": {
            "101": {"description": "The terminal"},
            "default": {"$ref": "#/components/responses/Problem"},
        },
    }
}
_TUNNEL = {
    "get": {
        "summary": "The SSH or Jupyter Lab port of a dev server, over a WebSocket",
        "description": (
            'Binary frames are the bytes, in both directions; the text {"eof": true} means that '
            "its sender has finished. Close codes: 4004 (no such reservation), 4403 (not yours), "
            "4409 (not active, or without Jupyter Lab), 4400 (no such member), 4500 (try again)."
        ),
        "tags": ["reservations"],
        "parameters": [
            _path_parameter("id"),
            _parameter(
                "rank", "query", {"type": "integer", "minimum": 0}, required=False,
                about="The rank of the member; default 0.",
            ),
        ],
        "responses": {
            "101": {"description": "The stream"},
            "default": {"$ref": "#/components/responses/Problem"},
        },
    }
}  # fmt: skip


_PROBLEM: Json = {
    "type": "/docs#UnknownPartition", "title": "UnknownPartition", "status": 404, "code": "OD001",
    "detail": 'partition "h1000" does not exist', "hint": "You may submit to: cpu, h100, l4.",
}  # fmt: skip
_SOCKETS = {
    "/v1/jobs/{id}/attach": _ATTACH,
    "/v1/reservations/{id}/ssh": _TUNNEL,
    "/v1/reservations/{id}/jupyter": _TUNNEL,
}


class OpenApiRoutes:
    def __init__(self, others: Sequence[Operation]) -> None:
        self._others = others

    def operations(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="GET",
                path="/openapi.json",
                tag="cluster",
                serve=self.document,
                public=True,
                summary="This document",
            ),
            Operation(
                method="GET",
                path="/docs",
                tag="cluster",
                serve=self.docs,
                public=True,
                media_type="text/html",
                summary="This document as a page",
            ),
        )

    async def document(self, _: Call) -> Response:
        return Response(self._encoded, media_type=JSON)

    async def docs(self, _: Call) -> Response:
        return Response(self._page, media_type="text/html; charset=utf-8")

    @functools.cached_property
    def _document(self) -> Json:
        return document([*self._others, *self.operations()])

    @functools.cached_property
    def _encoded(self) -> bytes:
        return msgspec.json.encode(self._document)

    @functools.cached_property
    def _page(self) -> bytes:
        return page(self._document).encode()


def document(operations: Sequence[Operation]) -> Json:
    """The OpenAPI 3.1 document of the operations."""
    named = [Problem, *(form for o in operations for form in _forms(o))]
    schemas, components = msgspec.json.schema_components(named, ref_template=REF)
    schema_of = dict(zip(named, schemas, strict=True))
    for form in _structs(msgspec.Struct):
        for name, note in _field_notes(form, components).items():
            components[form.__name__]["properties"][name]["description"] = note
    queries = {o.query.__name__ for o in operations}
    paths = {path: _socket(path, of) for path, of in _SOCKETS.items()}
    for operation in operations:
        described = _operation(operation, schema_of, components)
        paths.setdefault(operation.path, {})[operation.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "odc",
            "version": __version__,
            "description": DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": {k: v for k, v in sorted(components.items()) if k not in queries},
            "responses": {
                "Problem": {
                    "description": "Refused or failed",
                    "content": {PROBLEM_TYPE: {"schema": schema_of[Problem], "example": _PROBLEM}},
                }
            },
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _socket(path: str, methods: Json) -> Json:
    return {"get": {**methods["get"], "operationId": operation_id("GET", path)}}


def _operation(operation: Operation, schema_of: Mapping[Form, Json], components: Json) -> Json:
    parameters = [_path_parameter(name) for name in _PATH_PART.findall(operation.path)]
    query = components[operation.query.__name__]
    for name, schema in query.get("properties", {}).items():
        required = name in query.get("required", ())
        about = schema.pop("description", "")
        parameters.append(_parameter(name, "query", schema, required=required, about=about))
    if operation.makes:
        parameters.append(_KEY)
    responses: Json = {"default": {"$ref": "#/components/responses/Problem"}}
    for status, forms in sorted(operation.answers.items()):
        content: Json = {}
        if forms:
            kinds = [schema_of[form] for form in forms]
            content["schema"] = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
            if operation.media_type == JSON:
                content["examples"] = {
                    form.__name__: {"value": example_of(schema_of[form], components)}
                    for form in forms
                }
        responses[str(status)] = {"description": "Done"}
        if status != NO_CONTENT:
            responses[str(status)]["content"] = {operation.media_type: content}
    described: Json = {
        "summary": operation.summary,
        "tags": [operation.tag],
        "operationId": operation_id(operation.method, operation.path),
        "parameters": parameters,
        "responses": dict(sorted(responses.items())),
    }
    if not operation.public:
        described["security"] = [{}, {"key": []}]
    if operation.body is not None:
        schema = schema_of[operation.body]
        example = example_of(schema, components)
        described["requestBody"] = {
            "required": True,
            "content": {JSON: {"schema": schema, "example": example}},
        }
    elif operation.raw is not None:
        described["requestBody"] = {
            "required": True,
            "content": {operation.raw: {"schema": _BYTES}},
        }
    return described


def _structs(root: Form) -> Iterator[Form]:
    for form in root.__subclasses__():
        if form.__module__.startswith("odcd."):
            yield form
        yield from _structs(form)


def _field_notes(form: Form, components: Json) -> dict[str, str]:
    """The docstrings below the fields of a struct that is part of the document, by their names in
    JSON."""
    if form.__name__ not in components:
        return {}
    notes = _notes_in(form.__module__).get(form.__qualname__, {})
    if not notes:
        return {}
    fields = msgspec.structs.fields(form)
    return {one.encode_name: notes[one.name] for one in fields if one.name in notes}


@functools.cache
def _notes_in(module: str) -> dict[str, dict[str, str]]:
    """The docstrings by struct and field. Each module is read once for all its structs."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    notes: dict[str, dict[str, str]] = {}
    for form in tree.body:
        if not isinstance(form, ast.ClassDef):
            continue
        for field, note in pairwise(form.body):
            match field, note:
                case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(text))):
                    notes.setdefault(form.name, {})[name] = " ".join(text.split())
                case _:
                    pass
    return notes


def _forms(operation: Operation) -> list[Form]:
    forms = [form for kinds in operation.answers.values() for form in kinds]
    return [operation.query, *([operation.body] if operation.body else []), *forms]
