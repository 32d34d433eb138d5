"""moto's server with calls that moto lacks: add-ons, access entries and Pod Identity associations
of EKS, rules of the Recycle Bin, backup policies of EFS, placement groups. They keep what they get
and return it. So do the life-cycle rules of buckets, which moto returns in another form."""

from __future__ import annotations

import io
import itertools
import json
import re
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import make_server

from tests.support.fakes import moto_answers

Json = dict[str, Any]
ACCOUNT = "123456789012"
NOT_FOUND = "ResourceNotFoundException"


class MissingError(Exception):
    """There is no such resource."""


@dataclass
class Missing:
    """The calls that moto lacks. kept: by path."""

    kept: dict[str, Json] = field(default_factory=dict[str, Json])
    policies: dict[str, dict[str, Json]] = field(default_factory=dict[str, dict[str, Json]])
    numbers: Iterable[int] = field(default_factory=lambda: itertools.count(1))

    def answer(self, method: str, path: str, body: Json) -> Json | None:
        """None: a call for moto."""
        for form, handler in (
            (r"/clusters/([^/]+)/addons(?:/([^/]+))?(/update)?", self._addon),
            (r"/clusters/([^/]+)/access-entries(?:/([^/]+))?", self._entry),
            (
                r"/clusters/([^/]+)/access-entries/([^/]+)/access-policies(?:/([^/]+))?",
                self._policy,
            ),
            (r"/clusters/([^/]+)/pod-identity-associations(?:/([^/]+))?", self._association),
            (r"/clusters/([^/]+)/updates/([^/]+)", self._update),
            (r"/rules(?:/([^/]+))?", self._rule),
            (r"/tags/(arn:aws:rbin:.*)", self._rule_tags),
            (r"/2015-02-01/file-systems/([^/]+)/backup-policy", self._backup),
        ):
            if found := re.fullmatch(form, path):
                words = [None if word is None else unquote(word) for word in found.groups()]
                return handler(method, body, *words)
        return None

    def _get(self, method: str, key: str) -> Json:
        if key not in self.kept:
            raise MissingError(key)
        return self.kept.pop(key) if method == "DELETE" else self.kept[key]

    def _addon(
        self, method: str, body: Json, cluster: str, name: str | None, update: str | None
    ) -> Json:
        if method == "POST" and name is None:
            name = str(body["addonName"])
            self.kept[f"addon/{cluster}/{name}"] = {
                **body, "clusterName": cluster, "status": "ACTIVE", "health": {"issues": []},
                "addonArn": f"arn:aws:eks:us-east-2:{ACCOUNT}:addon/{cluster}/{name}/1",
                "createdAt": 1.7e9, "modifiedAt": 1.7e9, "tags": body.get("tags") or {},
            }  # fmt: skip
        if name is None:
            names = [key.rsplit("/", 1)[1] for key in self.kept if key.startswith("addon/")]
            return {"addons": names}
        if update:
            self.kept[f"addon/{cluster}/{name}"] |= body
            return self._update("GET", {}, cluster, "1")
        return {"addon": self._get(method, f"addon/{cluster}/{name}")}

    def _entry(self, method: str, body: Json, cluster: str, arn: str | None) -> Json:
        if method == "POST" and arn is None:
            arn = str(body["principalArn"])
            self.kept[f"entry/{cluster}/{arn}"] = {
                "kubernetesGroups": [], "username": arn, "type": "STANDARD", **body,
                "clusterName": cluster, "tags": body.get("tags") or {},
                "accessEntryArn": f"arn:aws:eks:us-east-2:{ACCOUNT}:access-entry/{cluster}/1",
                "createdAt": 1.7e9, "modifiedAt": 1.7e9,
            }  # fmt: skip
        return {"accessEntry": self._get(method, f"entry/{cluster}/{arn}")}

    def _policy(self, method: str, body: Json, cluster: str, arn: str, policy: str | None) -> Json:
        there = self.policies.setdefault(f"{cluster}/{arn}", {})
        if method == "POST":
            policy = str(body["policyArn"])
            there[policy] = {**body, "associatedAt": 1.7e9, "modifiedAt": 1.7e9}
            return {
                "clusterName": cluster,
                "principalArn": arn,
                "associatedAccessPolicy": there[policy],
            }
        if method == "DELETE":
            there.pop(str(policy))
            return {}
        return {
            "clusterName": cluster,
            "principalArn": arn,
            "associatedAccessPolicies": list(there.values()),
        }

    def _association(self, method: str, body: Json, cluster: str, id: str | None) -> Json:
        if method == "POST" and id is None:
            id = f"a-{next(iter(self.numbers)):08d}"
            arn = f"arn:aws:eks:us-east-2:{ACCOUNT}:podidentityassociation/{cluster}/{id}"
            self.kept[f"association/{cluster}/{id}"] = {
                **body, "clusterName": cluster, "associationId": id, "associationArn": arn,
                "tags": body.get("tags") or {}, "createdAt": 1.7e9, "modifiedAt": 1.7e9,
            }  # fmt: skip
        return {"association": self._get(method, f"association/{cluster}/{id}")}

    def _update(self, method: str, body: Json, cluster: str, id: str) -> Json:
        update = {"id": id, "status": "Successful", "type": "AddonUpdate", "errors": []}
        return {"update": {**update, "params": [], "createdAt": 1.7e9}}

    def _rule(self, method: str, body: Json, id: str | None) -> Json:
        if method == "POST":
            id = f"rule{next(iter(self.numbers)):08d}"
            self.kept[f"rule/{id}"] = {
                **body, "Identifier": id, "Status": "available",
                "RuleArn": f"arn:aws:rbin:us-east-2:{ACCOUNT}:rule/{id}",
            }  # fmt: skip
        return self._get(method, f"rule/{id}")

    def _backup(self, method: str, body: Json, id: str) -> Json:
        if method == "PUT":
            self.kept[f"backup/{id}"] = body
        return self._get(method, f"backup/{id}")

    def _rule_tags(self, method: str, body: Json, arn: str) -> Json:
        rule = self.kept.get("rule/" + arn.rsplit("/", 1)[1], {})
        return {"Tags": rule.get("Tags") or []}


def application() -> Callable[..., Any]:
    moto = DomainDispatcherApplication(create_backend_app)
    missing, lock = Missing(), threading.Lock()
    life_cycles: dict[str, bytes] = {}
    groups: dict[str, str] = {}

    def serve(environ: dict[str, Any], start: Callable[..., Any]) -> Any:
        method, path = environ["REQUEST_METHOD"], _path(environ)
        if path == "/" and (found := _placement_group(groups, _body(environ), start)):
            return found
        if environ.get("QUERY_STRING", "").startswith("lifecycle"):
            return _life_cycle(life_cycles, method, path, _body(environ), start) or moto(
                environ, start
            )  # fmt: skip
        if not path.startswith(("/clusters/", "/rules", "/tags/arn:aws:rbin")) and not (
            path.endswith("/backup-policy")
        ):
            return moto(environ, start)
        data = _body(environ)
        try:
            with lock:
                answer = missing.answer(method, path, json.loads(data) if data else {})
        except MissingError as error:
            kinds = [("content-type", "application/json"), ("x-amzn-errortype", NOT_FOUND)]
            start("404 Not Found", kinds)
            return [json.dumps({"message": f"no {error}"}).encode()]
        if answer is None:
            return moto(environ, start)
        start("200 OK", [("content-type", "application/json")])
        return [json.dumps(answer).encode()]

    return serve


def _path(environ: dict[str, Any]) -> str:
    """Before decoding: an ARN in a path has slashes of its own."""
    path = urlsplit(environ.get("RAW_URI") or environ.get("REQUEST_URI") or "").path
    path = path or str(environ["PATH_INFO"])
    return path.replace("%3A", ":") if path.startswith("/tags/") else path


def _body(environ: dict[str, Any]) -> bytes:
    data: bytes = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    environ["wsgi.input"] = io.BytesIO(data)
    return data


def _placement_group(
    kept: dict[str, str], data: bytes, start: Callable[..., Any]
) -> list[bytes] | None:
    """Placement groups of EC2. None: another call."""
    given = {name: values[0] for name, values in parse_qs(data.decode("latin-1")).items()}
    action = given.get("Action", "")
    if not action.endswith(("PlacementGroup", "PlacementGroups")):
        return None
    name = given.get("GroupName", given.get("GroupName.1", ""))
    if action == "CreatePlacementGroup":
        tags = "".join(
            f"<item><key>{given[key]}</key><value>{given[key[:-3] + 'Value']}</value></item>"
            for key in given
            if key.startswith("TagSpecification.1.Tag.") and key.endswith(".Key")
        )
        kept[name] = (
            f"<groupName>{name}</groupName><groupId>pg-{len(kept):08d}</groupId>"
            f"<strategy>{given['Strategy']}</strategy><state>available</state>"
            "<spreadLevel>host</spreadLevel>"
            f"<groupArn>arn:aws:ec2:us-east-2:{ACCOUNT}:placement-group/{name}</groupArn>"
            f"<tagSet>{tags}</tagSet>"
        )
    if name not in kept:
        start("400 Bad Request", [("content-type", "text/xml")])
        code = "InvalidPlacementGroup.Unknown"
        error = f"<Error><Code>{code}</Code><Message>{name} is unknown</Message></Error>"
        return [f"<Response><Errors>{error}</Errors></Response>".encode()]
    if action == "DeletePlacementGroup":
        del kept[name]
        content = "<return>true</return>"
    elif action == "CreatePlacementGroup":
        content = f"<placementGroup>{kept[name]}</placementGroup>"
    else:
        content = f"<placementGroupSet><item>{kept[name]}</item></placementGroupSet>"
    start("200 OK", [("content-type", "text/xml")])
    return [f"<{action}Response>{content}</{action}Response>".encode()]


def _life_cycle(
    kept: dict[str, bytes], method: str, bucket: str, data: bytes, start: Callable[..., Any]
) -> list[bytes] | None:
    """None: a request for moto, which says that there are no rules."""
    size = ("x-amz-transition-default-minimum-object-size", "all_storage_classes_128K")
    if method == "PUT":
        kept[bucket] = data
        start("200 OK", [size])
        return [b""]
    if method == "DELETE":
        kept.pop(bucket, None)
        start("204 No Content", [])
        return [b""]
    if bucket not in kept:
        return None
    start("200 OK", [("content-type", "application/xml"), size])
    return [kept[bucket]]


if __name__ == "__main__":
    moto_answers.correct()
    make_server(
        "127.0.0.1",
        int(sys.argv[1]),
        application(),
        threaded=True,
        request_handler=MotoRequestHandler,
    ).serve_forever()
