"""Keeps the files of TLS of one listener, and reads them again when they change: certificates run out.

A certificate without a file for its key is a PKCS12 key store, which holds both; the package `cryptography` reads it.
"""

from trivium.access.reread import Reread, read_regular
from trivium.machine.extras import install_command
from trivium.tls import Tls
from trivium.types.errors import Code, ServeError
from trivium.types.spoken import spoken

_PEM = b"-----BEGIN"


class TlsFiles(Reread[tuple[bytes, ...], Tls]):
    """Holds what was read last; see `Reread`. Files that do not make a pair are INVALID, in words that name the
    listener by its name, and change nothing once there is one.
    """

    def __init__(
        self, listener: str, certificate: str, key: str, authorities: str, password: str = ""
    ) -> None:
        self._listener = listener
        self._is_store = not key
        self._password = password
        self._paths = [path for path in (certificate, key, authorities) if path]
        super().__init__(f"The certificates for {listener}", self._read_files, self._checked)

    def _read_files(self) -> tuple[bytes, ...]:
        try:
            return tuple(map(read_regular, self._paths))
        except OSError as error:
            raise self._unfit(error) from error

    def _checked(self, pems: tuple[bytes, ...]) -> Tls:
        certificate, key, *authorities = (*self._stored(pems[0]), *pems[1:]) if self._is_store else pems
        tls = Tls(certificate, key, authorities[0] if authorities else None)
        try:
            tls.context()
        except (OSError, ValueError) as error:  # SSLError is an OSError
            raise self._unfit(error) from error
        return tls

    def _stored(self, data: bytes) -> tuple[bytes, bytes]:
        if _PEM in data:
            raise _no_pair(self._listener)
        try:
            return read_store(data, self._password)
        except ImportError as error:
            raise ServeError(
                Code.INVALID,
                f"{self._paths[0]} is a PKCS12 key store, which the package cryptography reads, and that is not "
                f"installed. Run {install_command('pkcs12')}, or convert it by openssl pkcs12 -in {self._paths[0]} "
                "-nodes -out server.pem, and give that file as certificate and as key.",
            ) from error
        except ValueError as error:
            raise ServeError(
                Code.INVALID,
                spoken(
                    f"The key store {self._paths[0]} cannot be used: {error}. Give a PKCS12 file with a key and its "
                    "certificate, and its password (--keystore-password)."
                ),
            ) from error

    def _unfit(self, error: Exception) -> ServeError:
        return ServeError(
            Code.INVALID,
            f"The files for {self._listener}'s TLS ({', '.join(self._paths)}) cannot be used: {error}. Give PEM files, "
            "a certificate and the key that it was made for, not encrypted.",
        )


def _no_pair(listener: str) -> ServeError:
    flag = f"--{listener.lower()}-tls"
    return ServeError(
        Code.INVALID,
        f"TLS for {listener} takes a certificate and its key. Give both {flag}-certificate and {flag}-key, or a PKCS12 "
        "key store as the certificate alone.",
    )


def read_store(data: bytes, password: str) -> tuple[bytes, bytes]:
    """Return the certificates (the server's own first) and the key of a PKCS12 key store, in PEM. Raises ValueError for
    what is none, or is opened by another password, ImportError where the package `cryptography` lacks.
    """
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12

    key, certificate, others = pkcs12.load_key_and_certificates(data, password.encode())
    if key is None or certificate is None:
        raise ValueError("it holds no private key with its certificate")
    chain = b"".join(each.public_bytes(Encoding.PEM) for each in (certificate, *others))
    return chain, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def tls_files(
    listener: str, certificate: str, key: str, authorities: str, password: str = ""
) -> TlsFiles | None:
    """Read the files of these paths; None where all are empty. Raises INVALID."""
    if not (certificate or key or authorities):
        return None
    if not certificate:
        raise _no_pair(listener)
    return TlsFiles(listener, certificate, key, authorities, password)
