"""Keys and certificates of a plane: its server, its users, its service accounts."""

from __future__ import annotations

import datetime
from pathlib import Path

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_NAMES = ("127.0.0.1", "localhost", "kubernetes.default.svc", "kubernetes.default")
_PEM = serialization.Encoding.PEM


def _private(key: ec.EllipticCurvePrivateKey, form: serialization.PrivateFormat) -> bytes:
    return key.private_bytes(_PEM, form, serialization.NoEncryption())


class Pki:
    """A certificate authority in a folder, and the certificates it issued."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self._authority = trustme.CA()
        self.ca = folder / "ca.crt"
        self._authority.cert_pem.write_to_path(str(self.ca))
        self.server_cert, self.server_key = folder / "server.crt", folder / "server.key"
        served = self._authority.issue_cert(*_NAMES, common_name="odc-test")
        served.private_key_pem.write_to_path(str(self.server_key))
        for number, pem in enumerate(served.cert_chain_pems):
            pem.write_to_path(str(self.server_cert), append=number > 0)
        self.accounts_key = folder / "accounts.key"
        key = ec.generate_private_key(ec.SECP256R1())
        self.accounts_key.write_bytes(_private(key, serialization.PrivateFormat.TraditionalOpenSSL))

    def user(self, name: str, groups: tuple[str, ...]) -> tuple[bytes, bytes]:
        """The certificate and key that identify this user in these groups to the API server."""
        authority = x509.load_pem_x509_certificate(self._authority.cert_pem.bytes())
        signer = serialization.load_pem_private_key(
            self._authority.private_key_pem.bytes(), password=None
        )
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.datetime.now(datetime.UTC)
        subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        certificate = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([*subject, x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(authority.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), False)
            .sign(signer, hashes.SHA256())  # type: ignore[arg-type]
        )
        return certificate.public_bytes(_PEM), _private(key, serialization.PrivateFormat.PKCS8)
