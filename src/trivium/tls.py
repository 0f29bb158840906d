"""The files of TLS, read and tried before anything listens: what a front end needs of them, in PEM.

Decides whether they make a pair. Must not know who listens.
"""

import ssl
from dataclasses import dataclass
from pathlib import Path

from trivium.types.errors import Code, ServeError


@dataclass(frozen=True, slots=True)
class Tls:
    """Holds what TLS needs, in PEM. With `client_authorities` clients have to show a certificate of theirs."""

    certificate: bytes
    key: bytes
    client_authorities: bytes | None


def read_tls(listener: str, certificate: str, key: str, authorities: str) -> Tls | None:
    """Read the files of these paths; None where all are empty. INVALID for files that do not make a pair, in words
    that name the listener by its name.
    """
    if not (certificate or key or authorities):
        return None
    flag = f"--{listener.lower()}-tls"
    if not (certificate and key):
        raise ServeError(
            Code.INVALID,
            f"TLS for {listener} takes a certificate and its key. Give both {flag}-certificate and {flag}-key.",
        )
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key, password=lambda: "")
        if authorities:
            context.load_verify_locations(authorities)
        pems = [Path(path).read_bytes() for path in (certificate, key)]
        return Tls(pems[0], pems[1], Path(authorities).read_bytes() if authorities else None)
    except (OSError, ValueError) as error:  # SSLError is an OSError
        named = ", ".join(filter(None, (certificate, key, authorities)))
        raise ServeError(
            Code.INVALID,
            f"The files for {listener}'s TLS ({named}) cannot be used: {error}. Give PEM files, a certificate and the "
            "key that it was made for, not encrypted.",
        ) from error
