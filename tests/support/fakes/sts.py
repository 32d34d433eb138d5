"""AWS STS as logins use it: TLS, SigV4 verified with botocore's own signer, and its faults."""

from __future__ import annotations

import itertools
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import trustme
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

REGION = "us-east-2"
ACCOUNT = "111122223333"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/GpuUsers"
NEVER_S = 60.0
"""No client should wait this long."""
_LIVES = itertools.cycle(range(60, 600))
ANSWER = """\
<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <GetCallerIdentityResult>
    <Arn>{arn}</Arn>
    <UserId>AROAEXAMPLE:{session}</UserId>
    <Account>{account}</Account>
  </GetCallerIdentityResult>
  <ResponseMetadata><RequestId>1</RequestId></ResponseMetadata>
</GetCallerIdentityResponse>
"""
ERROR = (
    '<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type>'
    "<Code>{code}</Code><Message>no</Message></Error></ErrorResponse>"
)


class Sts(ThreadingHTTPServer):
    """people: by access key id, the secret and the ARN of the answer. trouble: if set, answers
    instead of all this."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.people: dict[str, tuple[str, str]] = {}
        self.requests: list[str] = []
        self.trouble: Callable[[_Handler], None] | None = None
        self.authority_ = trustme.CA()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.authority_.issue_cert("127.0.0.1", "localhost").configure_cert(context)
        self.socket = context.wrap_socket(
            self.socket, server_side=True, do_handshake_on_connect=False
        )

    @property
    def authority(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"

    @property
    def url(self) -> str:
        return f"https://{self.authority}"

    def trust(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        self.authority_.configure_trust(context)
        return context

    def write_ca(self, path: Path) -> Path:
        self.authority_.cert_pem.write_to_path(str(path))
        return path

    def add(
        self, session: str, *, role: str = "GpuUsers", account: str = ACCOUNT,
        arn: str | None = None,
    ) -> Credentials:  # fmt: skip
        """A caller with a session of a role; arn: replaces the ARN in the answer."""
        number = len(self.people)
        key, secret = f"ASIAEXAMPLE{number:09}", f"secret-{number}"
        self.people[key] = secret, arn or f"arn:aws:sts::{account}:assumed-role/{role}/{session}"
        return Credentials(key, secret, f"token/{number}+=")

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients hang up here, or reject our certificate."""

    def answer(self, target: str, headers: Mapping[str, str]) -> tuple[int, str]:
        query = dict(parse_qsl(urlsplit(target).query, strict_parsing=True))
        key = query["X-Amz-Credential"].split("/")[0]
        if key not in self.people:
            return 403, ERROR.format(code="InvalidClientTokenId")
        secret, arn = self.people[key]
        if signature_of(self.url, query, headers, secret) != query["X-Amz-Signature"]:
            return 403, ERROR.format(code="SignatureDoesNotMatch")
        signed_at = datetime.strptime(query["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        if datetime.now(UTC) > signed_at + timedelta(seconds=int(query["X-Amz-Expires"])):
            return 403, ERROR.format(code="ExpiredToken")
        account = arn.split(":")[4]
        return 200, ANSWER.format(arn=arn, account=account, session=arn.rpartition("/")[2])


def signature_of(
    url: str, query: Mapping[str, str], headers: Mapping[str, str], secret: str
) -> str:
    """The expected signature of the headers that the request lists as signed, as they arrived."""
    kept = {name: value for name, value in query.items() if name != "X-Amz-Signature"}
    request = AWSRequest("GET", f"{url}/", params=kept)
    for name in query["X-Amz-SignedHeaders"].split(";"):
        request.headers[name] = headers.get(name, "")
    request.context["timestamp"] = query["X-Amz-Date"]
    key, _, region, service, _ = query["X-Amz-Credential"].split("/")
    auth = SigV4QueryAuth(Credentials(key, secret), service, region)
    # The query as it arrived: what a presigner would add is in it.
    auth._modify_request_before_signing = lambda _: None
    text = auth.string_to_sign(request, auth.canonical_request(request))
    return auth.signature(text, request)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 20
    server: Sts

    def log_message(self, format: str, *args: object) -> None: ...

    def do_GET(self) -> None:
        self.server.requests.append(self.path)
        if self.server.trouble is not None:
            self.server.trouble(self)
            return
        self.reply(*self.server.answer(self.path, self.headers))

    def reply(self, status: int, body: str, **headers: str) -> None:
        data = body.encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.close_connection = True


def silent(handler: _Handler) -> None:
    time.sleep(NEVER_S)


def dripping(handler: _Handler) -> None:
    handler.send_response(200)
    handler.send_header("content-length", "100000")
    handler.end_headers()
    for _ in range(int(NEVER_S / 0.1)):
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.1)


def redirecting(handler: _Handler) -> None:
    handler.reply(302, "", location=f"{handler.server.url}/?elsewhere")


def endless(handler: _Handler) -> None:
    handler.reply(200, " " * 200_000)


def saying(status: int, body: str = "") -> Callable[[_Handler], None]:
    return lambda handler: handler.reply(status, body)


@contextmanager
def serving_sts() -> Iterator[Sts]:
    server = Sts()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def presign(
    credentials: Credentials, url: str, server_id: str | None, *, expires_s: int | None = None,
    region: str = REGION, action: str = "GetCallerIdentity", **headers: str,
) -> str:  # fmt: skip
    """A presigned URL; server_id None: not among what is signed. expires_s None: two of a second
    are not the same."""
    request = AWSRequest(
        "GET", f"{url}/", params={"Action": action, "Version": "2011-06-15"}, headers=headers
    )
    if server_id is not None:
        request.headers["X-Odc-Server-Id"] = server_id
    SigV4QueryAuth(credentials, "sts", region, expires=expires_s or next(_LIVES)).add_auth(request)
    return request.url
