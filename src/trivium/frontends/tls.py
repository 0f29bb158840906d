"""Makes what a listener over TLS needs from certificates in PEM.

Source: RFC 9113, section 9.2; gRPC takes "h2" by ALPN and nothing else. Python reads a private key from files only.
"""

import ssl
import tempfile
from pathlib import Path

from trivium.tls import Tls


def context_of(tls: Tls, protocol: str) -> ssl.SSLContext:
    """Make the context of a server that speaks `protocol`, by its name in ALPN; with authorities, clients have to show
    a certificate of theirs. SSLError where the PEM is none.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols([protocol])
    with tempfile.TemporaryDirectory(prefix="trivium-tls-") as folder:  # readable by us alone
        certificate, key = Path(folder, "certificate.pem"), Path(folder, "key.pem")
        certificate.write_bytes(tls.certificate)
        key.write_bytes(tls.key)
        context.load_cert_chain(certificate, key, password=lambda: "")
    if tls.client_authorities is not None:
        context.load_verify_locations(cadata=tls.client_authorities.decode("latin-1"))
        context.verify_mode = ssl.CERT_REQUIRED
    return context
