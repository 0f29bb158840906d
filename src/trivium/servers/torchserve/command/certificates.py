"""The certificate of TorchServe's addresses that begin with https, and a pair for those who have given none.

Source: spec sheet `torchserve`, section 2: PEM files, a key store, else one that the server signs itself.
"""

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from trivium.machine.extras import install_command
from trivium.settings.sources import Sources
from trivium.types.errors import Code, ServeError

_BY_HAND = "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -keyout key.pem -out cert.pem"
_DAYS = 365


def given_pair(sources: Sources) -> tuple[str, str] | None:
    """Return the files of certificate and key, the second empty for a key store; None where nobody gives any. Raises
    INVALID for a half of a pair.
    """
    certificate, key = sources.text("certificate_file"), sources.text("private_key_file")
    if certificate and key:
        return certificate, key
    if certificate or key:
        lacking = "private_key_file" if certificate else "certificate_file"
        there = "certificate_file" if certificate else "private_key_file"
        raise ServeError(
            Code.INVALID,
            f"{sources.origin(there)} has no {lacking} to go with it. Give both, in PEM; openssl x509 and openssl pkey "
            "convert others.",
        )
    store = sources.text("keystore")
    return (store, "") if store else None


def can_sign() -> None:
    """Raise UNSUPPORTED, with what to do, where no pair can be made here."""
    try:
        import cryptography.x509  # noqa: F401
    except ImportError as error:
        raise ServeError(
            Code.UNSUPPORTED,
            "An address begins with https, and there are no certificate_file and private_key_file. A pair that the "
            f"server signs itself needs the package cryptography: {install_command('pkcs12')}. Or make one by "
            f"`{_BY_HAND}`, and name both files.",
        ) from error


def signed_pair(folder: Path) -> tuple[str, str]:
    """Make a pair that nobody else has signed in a private folder, for localhost, and return its files."""
    can_sign()
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=_DAYS))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "self-signed.pem", folder / "self-signed-key.pem"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    paths[1].touch(0o600)
    paths[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return str(paths[0]), str(paths[1])
