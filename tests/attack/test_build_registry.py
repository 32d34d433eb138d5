"""A real registry, configured as the manifests configure it: a build pushes to the repository of
its user and nowhere else, nothing is deleted, and the port for nodes writes nothing."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from odcd.builds.settings import BuildSettings
from odcd.errors import BadRequest
from odcd.executor.kubernetes.build_credentials import BuildKey, read_key
from odcd.records.build import Build

COMPONENT = Path(__file__).parents[2] / "k8s" / "components" / "registry-builds"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CREATED, ACCEPTED, OK = 201, 202, 200
UNAUTHORIZED, NOT_ALLOWED = 401, 405
ALICE = Build(
    id=7, attempt=1, digest="a" * 64, target="registry.example:5000/odc/builds",
    dockerfile="Dockerfile", uid=1001, made=False, started_at=datetime(2026, 1, 1, tzinfo=UTC),
)  # fmt: skip
BOB = replace(ALICE, id=8, uid=1002)


def make_key(folder: Path, curve: ec.EllipticCurve | None = None) -> None:
    """As the operators' page makes it with openssl."""
    folder.mkdir()
    private = ec.generate_private_key(curve or ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "odc-builds")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=3650))
        .sign(private, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    own = serialization.PrivateFormat.PKCS8
    (folder / "tls.key").write_bytes(private.private_bytes(pem, own, serialization.NoEncryption()))
    (folder / "tls.crt").write_bytes(certificate.public_bytes(pem))


@dataclass(frozen=True)
class Registry:
    push: int
    pull: int
    key: BuildKey

    def token(self, build: Build, at: datetime | None = None) -> str:
        own = BuildSettings(registry=build.target, key=Path("/unused"))
        return self.key.token(build, own, at or datetime.now(UTC))

    def ask(
        self, method: str, path: str, token: str | None, body: bytes = b"", *,
        port: int | None = None, kind: str = "application/octet-stream",
    ) -> tuple[int, dict[str, str]]:  # fmt: skip
        connection = http.client.HTTPConnection("127.0.0.1", port or self.push, timeout=60)
        headers = {"Content-Type": kind, "Accept": MANIFEST}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}

    def push_image(self, repository: str, token: str | None) -> tuple[int, str]:
        """The status of the first request that was refused, else of the last; and the digest."""
        config = b"{}"
        digest = f"sha256:{hashlib.sha256(config).hexdigest()}"
        status, headers = self.ask("POST", f"/v2/{repository}/blobs/uploads/", token)
        if status != ACCEPTED:
            return status, ""
        location = headers["location"].partition(f":{self.push}")[2] or headers["location"]
        status, _ = self.ask("PUT", f"{location}&digest={digest}", token, config)
        assert status == CREATED
        described = {
            "mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest,
            "size": len(config),
        }  # fmt: skip
        manifest = json.dumps(
            {"schemaVersion": 2, "mediaType": MANIFEST, "config": described, "layers": []}
        ).encode()
        path = f"/v2/{repository}/manifests/cache"
        status, headers = self.ask("PUT", path, token, manifest, kind=MANIFEST)
        return status, headers.get("docker-content-digest", "")


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """Both servers, of one folder."""
    program = os.environ.get("ODC_REGISTRY") or shutil.which("docker-registry")
    if program is None:
        pytest.skip("needs docker-registry (Debian's package)")
    folder = tmp_path_factory.mktemp("registry")
    make_key(folder / "key")
    with server(program, "push", folder) as push, server(program, "pull", folder) as pull:
        yield Registry(push, pull, read_key(folder / "key"))


@contextmanager
def server(program: str, name: str, folder: Path) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
    environment = {
        "PATH": os.environ["PATH"],
        "REGISTRY_HTTP_ADDR": f"127.0.0.1:{port}",
        "REGISTRY_STORAGE_FILESYSTEM_ROOTDIRECTORY": str(folder / "images"),
    }
    if name == "push":
        environment["REGISTRY_AUTH_TOKEN_ROOTCERTBUNDLE"] = str(folder / "key" / "tls.crt")
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [program, "serve", str(COMPONENT / f"{name}.yml")], env=environment, stdout=log,
            stderr=log,
        )  # fmt: skip
        try:
            until = time.monotonic() + 60
            while True:
                assert process.poll() is None, (folder / f"{name}.log").read_text()
                with suppress(OSError):
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                assert time.monotonic() < until
                time.sleep(0.05)
            yield port
        finally:
            process.terminate()
            process.wait(30)


def test_a_build_pushes_to_the_repository_of_its_user_and_nowhere_else(registry: Registry) -> None:
    token = registry.token(ALICE)
    assert registry.push_image("odc/builds/u1001", token)[0] == CREATED
    for other in ("odc/builds/u1002", "odc/builds", "odc/builds/u10011", "library/python"):
        assert registry.push_image(other, token)[0] == UNAUTHORIZED, other


def test_a_build_reads_nothing_of_other_users(registry: Registry) -> None:
    assert registry.push_image("odc/builds/u1002", registry.token(BOB))[0] == CREATED
    path = "/v2/odc/builds/u1002/manifests/cache"
    assert registry.ask("GET", path, registry.token(BOB))[0] == OK
    assert registry.ask("GET", path, registry.token(ALICE))[0] == UNAUTHORIZED
    assert registry.ask("GET", "/v2/_catalog", registry.token(ALICE))[0] == UNAUTHORIZED


def test_nothing_is_pushed_without_a_credential_or_with_an_old_one(registry: Registry) -> None:
    assert registry.push_image("odc/builds/u1001", None)[0] == UNAUTHORIZED
    old = registry.token(ALICE, datetime.now(UTC) - timedelta(hours=1))
    assert registry.push_image("odc/builds/u1001", old)[0] == UNAUTHORIZED
    head, claims, signature = registry.token(ALICE).split(".")
    forged = ".".join([head, registry.token(BOB).split(".")[1], signature])
    assert claims not in forged
    assert registry.push_image("odc/builds/u1002", forged)[0] == UNAUTHORIZED


def test_no_build_deletes_even_its_own_image(registry: Registry) -> None:
    token = registry.token(ALICE)
    status, digest = registry.push_image("odc/builds/u1001", token)
    assert status == CREATED
    for path in (
        f"/v2/odc/builds/u1001/manifests/{digest}",
        f"/v2/odc/builds/u1001/blobs/{digest}",
    ):
        assert registry.ask("DELETE", path, token)[0] in (UNAUTHORIZED, NOT_ALLOWED)
        assert registry.ask("DELETE", path, None, port=registry.pull)[0] == NOT_ALLOWED


def test_nodes_pull_without_a_credential_and_nothing_can_be_written_there(
    registry: Registry,
) -> None:
    token = registry.token(ALICE)
    _, digest = registry.push_image("odc/builds/u1001", token)
    path = f"/v2/odc/builds/u1001/manifests/{digest}"
    assert registry.ask("GET", path, None, port=registry.pull)[0] == OK
    upload = "/v2/odc/builds/u1001/blobs/uploads/"
    assert registry.ask("POST", upload, token, port=registry.pull)[0] == NOT_ALLOWED


def test_a_key_that_cannot_sign_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="cannot be read"):
        read_key(tmp_path)
    make_key(tmp_path / "key", ec.SECP384R1())
    with pytest.raises(BadRequest, match="P-256"):
        read_key(tmp_path / "key")
