"""Keeps the files of TLS of one listener, and reads them again when they change: certificates run out."""

from trivium.access.reread import Reread, read_regular
from trivium.tls import Tls
from trivium.types.errors import Code, ServeError


class TlsFiles(Reread[tuple[bytes, ...], Tls]):
    """Holds what was read last; see `Reread`. Files that do not make a pair are INVALID, in words that name the
    listener by its name, and change nothing once there is one.
    """

    def __init__(self, listener: str, certificate: str, key: str, authorities: str) -> None:
        self._listener = listener
        self._paths = [path for path in (certificate, key, authorities) if path]
        super().__init__(f"The certificates for {listener}", self._read_files, self._checked)

    def _read_files(self) -> tuple[bytes, ...]:
        try:
            return tuple(map(read_regular, self._paths))
        except OSError as error:
            raise self._unfit(error) from error

    def _checked(self, pems: tuple[bytes, ...]) -> Tls:
        certificate, key, *authorities = pems
        tls = Tls(certificate, key, authorities[0] if authorities else None)
        try:
            tls.context()
        except (OSError, ValueError) as error:  # SSLError is an OSError
            raise self._unfit(error) from error
        return tls

    def _unfit(self, error: Exception) -> ServeError:
        return ServeError(
            Code.INVALID,
            f"The files for {self._listener}'s TLS ({', '.join(self._paths)}) cannot be used: {error}. Give PEM files, "
            "a certificate and the key that it was made for, not encrypted.",
        )


def tls_files(listener: str, certificate: str, key: str, authorities: str) -> TlsFiles | None:
    """Read the files of these paths; None where all are empty. Raises INVALID."""
    if not (certificate or key or authorities):
        return None
    flag = f"--{listener.lower()}-tls"
    if not (certificate and key):
        raise ServeError(
            Code.INVALID,
            f"TLS for {listener} takes a certificate and its key. Give both {flag}-certificate and {flag}-key.",
        )
    return TlsFiles(listener, certificate, key, authorities)
