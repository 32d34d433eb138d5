"""Credentials with which a build pushes to the repository of its user, and nowhere else.

They are tokens in the form of the Distribution registry, signed by odcd. A build gets one of its
own, which ends soon after the build's time limit and does not allow deletes.
"""

from __future__ import annotations

import json
import secrets
from base64 import b64encode, urlsafe_b64encode
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils

from odcd.builds.repositories import path_of, repository_of
from odcd.builds.settings import LIMIT, BuildSettings
from odcd.errors import BadRequest
from odcd.records.build import Build

ISSUER = "odcd"
SERVICE = "odc-builds"
"""The registry's configuration names both: k8s/components/registry-builds/push.yml."""
LEEWAY = timedelta(minutes=5)
_PART = 32

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class BuildKey:
    """The key pair of tls.key and tls.crt; the registry trusts the certificate."""

    private: ec.EllipticCurvePrivateKey
    certificate: bytes

    def token(self, build: Build, own: BuildSettings, now: datetime) -> str:
        access = {
            "type": "repository",
            "name": path_of(repository_of(build, own)),
            "actions": ["pull", "push"],
        }
        claims = {
            "iss": ISSUER,
            "aud": SERVICE,
            "sub": f"u{build.uid}",
            "nbf": int(now.timestamp()) - 60,
            "iat": int(now.timestamp()),
            "exp": int((now + LIMIT + LEEWAY).timestamp()),
            "jti": secrets.token_hex(16),
            "access": [access],
        }
        chain = [b64encode(self.certificate).decode()]
        signed = f"{_encoded({'typ': 'JWT', 'alg': 'ES256', 'x5c': chain})}.{_encoded(claims)}"
        signature = self.private.sign(signed.encode(), ec.ECDSA(hashes.SHA256()))
        first, second = utils.decode_dss_signature(signature)
        raw = first.to_bytes(_PART, "big") + second.to_bytes(_PART, "big")
        return f"{signed}.{_base64(raw)}"

    def config(self, build: Build, own: BuildSettings, now: datetime) -> str:
        """The configuration file of BuildKit's client."""
        credential = {"registrytoken": self.token(build, own, now)}
        return json.dumps({"auths": {own.push_host: credential}})


def read_key(folder: Path) -> BuildKey:
    """Raises BadRequest."""
    try:
        private = serialization.load_pem_private_key((folder / "tls.key").read_bytes(), None)
        certificate = x509.load_pem_x509_certificate((folder / "tls.crt").read_bytes())
    except (OSError, ValueError, TypeError) as error:
        raise BadRequest(
            f"ODC_BUILD_KEY={folder} cannot be read: {error}",
            "It must hold tls.key and tls.crt: docs/operating/kubernetes.md#images",
        ) from error
    if not isinstance(private, ec.EllipticCurvePrivateKey) or private.curve.name != "secp256r1":
        raise BadRequest(
            f"the key of ODC_BUILD_KEY={folder} is not of the curve P-256",
            "Make one with openssl: docs/operating/kubernetes.md#images",
        )
    return BuildKey(private, certificate.public_bytes(serialization.Encoding.DER))


def _encoded(value: Json) -> str:
    return _base64(json.dumps(value, separators=(",", ":")).encode())


def _base64(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()
