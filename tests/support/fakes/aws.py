"""AWS as disks use it: moto's server behind a proxy that causes faults and delays."""

from __future__ import annotations

import http.client
import itertools
import json
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qsl, urlsplit

import boto3
import pytest

from tests.support.fakes.ebs import Ebs, RefusedByEc2
from tests.support.harness.controlplane.children import Child, free_port, module

REGION = "us-east-2"
ZONES = ("us-east-2a", "us-east-2b", "us-east-2c")
ANSWERS_S = 30.0

Fault = Literal["throttle", "error", "cut", "swallow", "half", "hang", "refuse"]
"""throttle, error, refuse: an answer that says so, and nothing is done. cut: the connection ends
before anything is done; swallow: after; half: in the middle of the answer. hang: it is done, and no
answer comes."""


@dataclass
class Rule:
    action: str
    fault: Fault
    times: float
    after: int
    code: str


@dataclass(frozen=True)
class Call:
    action: str
    params: dict[str, str]


class FakeAws(ThreadingHTTPServer):
    """calls: all requests, including those that failed."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, moto_port: int, folder: Path | None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.moto_port = moto_port
        self.ebs = Ebs(folder=folder)
        self.calls: list[Call] = []
        self.closing = threading.Event()
        self._rules: list[Rule] = []
        self._clients: dict[str, Any] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def ec2(self) -> Any:
        """A client that bypasses the proxy."""
        return self._client("ec2")

    @property
    def efs(self) -> Any:
        return self._client("efs")

    @property
    def autoscaling(self) -> Any:
        return self._client("autoscaling")

    def _client(self, service: str) -> Any:
        if service not in self._clients:
            self._clients[service] = boto3.client(
                service,  # pyright: ignore[reportArgumentType]
                region_name=REGION,
                endpoint_url=f"http://127.0.0.1:{self.moto_port}",
                aws_access_key_id="test",
                aws_secret_access_key="test",
            )
        return self._clients[service]

    def fail(
        self, action: str, fault: Fault, *, times: float = 1, after: int = 0,
        code: str = "RequestLimitExceeded",
    ) -> None:  # fmt: skip
        """action: CreateVolume, and so on; *: any. times: how often, after so many that pass. code:
        of throttle and refuse."""
        self._rules.append(Rule(action, fault, times, after, code))

    def heal(self) -> None:
        self._rules.clear()

    def count(self, action: str) -> int:
        return sum(call.action == action for call in self.calls)

    def last(self, action: str) -> dict[str, str]:
        """Parameters of the last call of this action."""
        return [call.params for call in self.calls if call.action == action][-1]

    def make_file_system(self) -> str:
        number = next(_NUMBERS)
        return str(self.efs.create_file_system(CreationToken=f"fs-{number}")["FileSystemId"])

    def copy_snapshot(self, id: str, *, owner: str = "999999999999") -> str:
        """A copy that a user made by hand, with all its tags. owner: the owner of the copy."""
        copied = self.ec2.copy_snapshot(SourceSnapshotId=id, SourceRegion=REGION)["SnapshotId"]
        self.ebs.copies.add(copied)
        self.ebs.keep_copy(id, copied)
        return self._not_ours(copied, self._tags(id), owner)

    def foreign_snapshot(self, volume: str, *, owner: str | None = None, polls: float = 0) -> str:
        """One that a backup service makes of our volume, with the tags of that; owner None: in our
        account. polls: for how many it is pending."""
        made = self.ec2.create_snapshot(VolumeId=volume)["SnapshotId"]
        self.ebs.keep_copy(volume, made)
        if polls:
            self.ebs.delay(made, polls)
        return self._not_ours(made, self._tags(volume), owner)

    def _tags(self, id: str) -> list[dict[str, str]]:
        found = self.ec2.describe_tags(Filters=[{"Name": "resource-id", "Values": [id]}])["Tags"]
        return [{"Key": tag["Key"], "Value": tag["Value"]} for tag in found]

    def _not_ours(self, id: str, tags: list[dict[str, str]], owner: str | None) -> str:
        if tags:
            self.ec2.create_tags(Resources=[id], Tags=tags)
        if owner is not None:
            self.ebs.owners[id] = owner
        return id

    def trouble(self, action: str) -> Rule | None:
        for rule in self._rules:
            if rule.action in (action, "*"):
                if rule.after > 0:
                    rule.after -= 1
                elif rule.times > 0:
                    rule.times -= 1
                    return rule
        return None

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients give up after this time."""


_NUMBERS = itertools.count(1)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeAws

    def log_message(self, format: str, *args: object) -> None: ...

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        is_efs = urlsplit(self.path).path.startswith("/2015-02-01/")
        params = dict(parse_qsl(urlsplit(self.path).query if is_efs else body.decode()))
        action = self._efs_action() if is_efs else params.get("Action", "?")
        # EBS has delays and limits of its own here; Auto Scaling is moto's.
        is_other = is_efs or "/autoscaling/" in self.headers.get("authorization", "")
        with self.server.ebs.lock:
            self.server.calls.append(Call(action, params))
            rule = self.server.trouble(action)
        fault = rule.fault if rule is not None else None
        if rule is not None and fault in ("throttle", "error", "refuse"):
            status = {"throttle": 503, "error": 500, "refuse": 400}[rule.fault]
            code = "InternalError" if fault == "error" else rule.code
            self._refuse(is_efs, status, code, "it was told to say so")
            return
        if fault != "cut":
            silent = fault in ("swallow", "hang")
            self._forward(is_other, action, params, body, silent=silent, half=fault == "half")
        if fault == "hang":
            self.server.closing.wait(ANSWERS_S)
        if fault is not None:
            self.close_connection = True

    do_POST = do_PUT = do_DELETE = do_GET

    def _efs_action(self) -> str:
        names = {"GET": "Describe", "POST": "Create", "DELETE": "Delete"}
        what = urlsplit(self.path).path.split("/")[2]
        resources = {"access-points": "AccessPoint", "file-systems": "FileSystem"}.get(what, what)
        return f"{names[self.command]}{resources}{'s' if self.command == 'GET' else ''}"

    def _forward(
        self, is_other: bool, action: str, params: dict[str, str], body: bytes, *, silent: bool,
        half: bool,
    ) -> None:  # fmt: skip
        ebs = self.server.ebs
        # The request and its result are one step.
        with ebs.lock:
            try:
                asks = is_other or ebs.ask(action, params)
            except RefusedByEc2 as error:
                if not silent:
                    self._refuse(False, 400, error.code, error.message)
                return
            status, kind, data = 200, "text/xml", b"<Response/>"
            if asks:
                status, kind, data = self._ask_moto(body)
            if status == 200 and asks:
                data = self._page(action, params, data) if is_other else ebs.answer(
                    action, params, data
                )  # fmt: skip
        if not silent:
            self._reply(status, kind, data, half=half)

    def _ask_moto(self, body: bytes) -> tuple[int, str, bytes]:
        way = http.client.HTTPConnection("127.0.0.1", self.server.moto_port, timeout=ANSWERS_S)
        try:
            headers = {
                name: value
                for name, value in self.headers.items()
                if name.lower() not in ("connection", "content-length", "expect")
            }
            way.request(self.command, self.path, body, headers)
            answer = way.getresponse()
            kind = answer.headers.get("content-type") or "text/xml"
            return answer.status, kind, answer.read()
        finally:
            way.close()

    def _page(self, action: str, params: dict[str, str], data: bytes) -> bytes:
        size = self.server.ebs.page_size
        if action != "DescribeAccessPoints" or size is None:
            return data
        answer = json.loads(data)
        at, points = int(params.get("NextToken", "0")), answer["AccessPoints"]
        answer["AccessPoints"] = points[at : at + size]
        if at + size < len(points):
            answer["NextToken"] = str(at + size)
        return json.dumps(answer).encode()

    def _refuse(self, is_efs: bool, status: int, code: str, message: str) -> None:
        if is_efs:
            data = json.dumps({"ErrorCode": code, "Message": message}).encode()
            self._reply(status, "application/json", data, code)
        else:
            error = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
            scaling = "/autoscaling/" in self.headers.get("authorization", "")
            data = (
                f"<ErrorResponse>{error}<RequestId>1</RequestId></ErrorResponse>"
                if scaling
                else f"<Response><Errors>{error}</Errors><RequestID>1</RequestID></Response>"
            ).encode()
            self._reply(status, "text/xml", data)

    def _reply(
        self, status: int, kind: str, data: bytes, code: str | None = None, *, half: bool = False
    ) -> None:  # fmt: skip
        self.send_response(status)
        self.send_header("content-type", kind)
        if code is not None:
            self.send_header("x-amzn-errortype", code)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if half else data)


@contextmanager
def running_moto(folder: Path) -> Iterator[int]:
    """Its port. folder: for its log."""
    port = free_port()
    argv, env = module("tests.support.fakes.moto_server", "-H", "127.0.0.1", "-p", str(port))
    # A thousand snapshots of Amazon's own, which every list goes through.
    env = {**env, "MOTO_EC2_LOAD_DEFAULT_AMIS": "false"}
    moto = Child(argv, folder / "moto.log", env)
    moto.start()
    try:
        moto.wait_until(lambda: answers(port), "moto's server")
        yield port
    finally:
        moto.stop()


def answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/moto-api/", timeout=5):
            return True
    except OSError:
        return False


@contextmanager
def serving_aws(moto_port: int, folder: Path | None = None) -> Iterator[FakeAws]:
    """Remove everything that earlier tests created in this moto. folder: the data of volumes and
    snapshots is kept below it."""
    reset = urllib.request.Request(f"http://127.0.0.1:{moto_port}/moto-api/reset", method="POST")
    urllib.request.urlopen(reset, timeout=ANSWERS_S).close()
    server = FakeAws(moto_port, folder)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()


def set_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """For all clients in this process, and nothing from this machine's own configuration."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_PROFILE", raising=False)
