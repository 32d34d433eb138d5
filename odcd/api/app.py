"""Put the API together: every resource's operations, one endpoint each."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Route, WebSocketRoute

from odcd.api.attach import AttachEndpoint
from odcd.api.changes import ChangeRoutes
from odcd.api.cluster import ClusterRoutes
from odcd.api.context import Api
from odcd.api.events import EventRoutes
from odcd.api.identity import Identifier
from odcd.api.jobs import JobRoutes
from odcd.api.logs import LogRoutes
from odcd.api.nodes import NodeRoutes
from odcd.api.openapi import OpenApiRoutes
from odcd.api.problems import of_http
from odcd.api.routing import Endpoint, Operation
from odcd.api.submit import SubmitRoutes


def create_app(deps: Api) -> Starlette:
    """The ASGI application. Serve it by odcd.api.server, which tells who is at the unix socket."""
    identifier = Identifier(
        deps.store,
        deps.clock,
        own_uid=deps.own_uid,
        operators=deps.operators,
        serves_uid=deps.serves_uid,
    )
    routes: list[BaseRoute] = [
        Route(o.path, Endpoint(o, identifier, deps.metrics), methods=[o.method])
        for o in operations(deps)
    ]
    routes.append(WebSocketRoute("/v1/jobs/{id}/attach", AttachEndpoint(deps, identifier)))
    return Starlette(routes=routes, exception_handlers={HTTPException: of_http})


def operations(deps: Api) -> list[Operation]:
    """Every operation; the busiest first, because routes are tried in order."""
    found: list[Operation] = []
    for resource in (
        SubmitRoutes,
        JobRoutes,
        ChangeRoutes,
        LogRoutes,
        EventRoutes,
        NodeRoutes,
        ClusterRoutes,
    ):
        found += resource(deps).operations()
    return [*found, *OpenApiRoutes(found).operations()]
