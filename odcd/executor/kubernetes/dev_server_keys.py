"""The secrets of a dev server: generated once, stored in the database, and passed to its pods as a
Secret."""

from __future__ import annotations

import secrets

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from odcd.records.dev_server import DevServerKeys

TOKEN_BYTES = 32


def make_keys() -> DevServerKeys:
    host_key, host_public = _pair()
    gang_key, gang_public = _pair()
    return DevServerKeys(
        host_key=host_key, host_public=host_public, gang_key=gang_key, gang_public=gang_public,
        jupyter_token=secrets.token_hex(TOKEN_BYTES),
    )  # fmt: skip


def _pair() -> tuple[str, str]:
    made = Ed25519PrivateKey.generate()
    private = made.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    )
    public = made.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    return private.decode(), public.decode()
