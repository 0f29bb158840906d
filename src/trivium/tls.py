"""Holds the files of TLS in PEM, and loads them.

Must not know who listens, nor where the files are.
"""

import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Tls:
    """Holds what TLS needs, in PEM. With `client_authorities` clients have to show a certificate of theirs."""

    certificate: bytes
    key: bytes
    client_authorities: bytes | None

    def context(self) -> ssl.SSLContext:
        """Make the context of a server that has these. Raises OSError (SSLError is one) or ValueError where they do not
        make a pair, or are no PEM. Python reads a private key from files only.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.TemporaryDirectory(prefix="trivium-tls-") as folder:  # readable by us alone
            certificate, key = Path(folder, "certificate.pem"), Path(folder, "key.pem")
            certificate.write_bytes(self.certificate)
            key.write_bytes(self.key)
            context.load_cert_chain(certificate, key, password=lambda: "")
        if self.client_authorities is not None:
            context.load_verify_locations(cadata=self.client_authorities.decode("latin-1"))
            context.verify_mode = ssl.CERT_REQUIRED
        return context
