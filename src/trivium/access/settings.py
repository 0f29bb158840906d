"""Makes from the configuration what decides who gets in, once for all listeners: keys, the rule for web pages, TLS."""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trivium.access.authorizer import KeyAuthorizer
from trivium.access.key_file import KeyFile
from trivium.access.sessions import KeySessions
from trivium.access.tls_files import TlsFiles, tls_files
from trivium.codecs.page_rule import rule_of
from trivium.config.options import ServerConfig
from trivium.frontends.entrance import Entrance
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import ALLOW_ALL, Authorizer
from trivium.types.spoken import spoken

_log = logging.getLogger("trivium.access")
NO_AUTHORIZERS: Mapping[str, Authorizer] = {}


@dataclass(frozen=True, slots=True)
class AccessSettings:
    """Holds the entrance of every listener, by its name, and the files of keys and certificates, if there are any."""

    entrances: Mapping[str, Entrance]
    files: Sequence[KeyFile | TlsFiles] = ()
    sessions: KeySessions | None = None
    """Tokens of those who have signed in at the console, where there are keys."""

    def start(self) -> None:
        """Begin to look whether they have changed."""
        for file in self.files:
            file.start()

    def close(self) -> None:
        """End that."""
        for file in self.files:
            file.close()


def access_settings(
    config: ServerConfig,
    authorizers: Mapping[str, Authorizer] = NO_AUTHORIZERS,
    takes_any_host: bool = False,
) -> AccessSettings:
    """Read key file and certificates. `authorizers` decide in the key file's place, by the name of their
    listener; of their keys no page of another server knows. With `takes_any_host` pages of all hosts are clients,
    unless hosts are named.
    Raises INVALID for options that contradict each other, and ServeError for files that cannot be used.
    """
    security = config.security
    if security.keys and security.open_management:
        raise ServeError(
            Code.INVALID,
            spoken(
                "--open-management lets everybody change what is served, and --keys those alone who have a key for it. "
                "Leave --open-management out, and give a key the scope manage."
            ),
        )
    file = KeyFile(Path(security.keys)) if security.keys else None
    is_lax = takes_any_host and not security.allowed_hosts
    pages = None if is_lax else rule_of(security.allowed_hosts)
    authorizer: Authorizer = ALLOW_ALL
    sessions = None
    if file is not None:
        sessions = KeySessions(file.in_force, time.time)
        authorizer = KeyAuthorizer(file.in_force, time.time, sessions)
    tls = _tls(config)
    entrances = {
        name: Entrance(
            authorizers.get(name, authorizer),
            None if name in authorizers else pages,
            None if files is None else files.in_force,
        )
        for name, files in tls.items()
    }
    if file is not None and config.wide:
        _warn_of_plain(config, entrances)
    return AccessSettings(
        entrances, [each for each in (file, *dict.fromkeys(tls.values())) if each is not None], sessions
    )


def _warn_of_plain(config: ServerConfig, entrances: Mapping[str, Entrance]) -> None:
    """Log which listeners take keys in the clear, on a server that is reached from other machines."""
    are_on = {
        "HTTP": not config.http.no_http,
        "gRPC": not config.grpc.no_grpc,
        "metrics": config.metrics.port >= 0,
        "management": config.management.is_on,
        "console": config.server.console_port >= 0,
        "gRPC management": config.management.grpc_port >= 0,
    }
    plain = [name for name, is_on in are_on.items() if is_on and entrances[name].tls is None]
    if plain:
        flags = ", ".join(dict.fromkeys(f"--{name.split()[0].lower()}-tls-certificate" for name in plain))
        _log.warning(
            "Keys travel in the clear over %s, and %s is reached from other machines. Give %s with their keys, unless "
            "a proxy in front speaks TLS.",
            " and ".join(plain),
            config.wide,
            flags,
        )


def _tls(config: ServerConfig) -> Mapping[str, TlsFiles | None]:
    http, grpc, metrics, management = config.http, config.grpc, config.metrics, config.management
    password = config.security.keystore_password
    if not management.is_on and (
        management.tls_certificate or management.tls_key or management.tls_client_authorities
    ):
        raise ServeError(
            Code.INVALID,
            spoken(
                "--management-tls-certificate, --management-tls-key and --management-tls-client-authorities are for a "
                "port of their own, and there is none. Give --management-port, or leave them out."
            ),
        )
    if metrics.port < 0 and (metrics.tls_certificate or metrics.tls_key or metrics.tls_client_authorities):
        raise ServeError(
            Code.INVALID,
            spoken(
                "--metrics-tls-certificate, --metrics-tls-key and --metrics-tls-client-authorities are for a port of "
                "their own, and there is none. Give --metrics-port, or leave them out: /metrics is served with HTTP's."
            ),
        )
    over_grpc = tls_files("gRPC", grpc.tls_certificate, grpc.tls_key, grpc.tls_client_authorities, password)
    over_http = tls_files("HTTP", http.tls_certificate, http.tls_key, http.tls_client_authorities, password)
    return {
        "HTTP": over_http,
        "console": over_http,
        "gRPC": over_grpc,
        "gRPC management": over_grpc,
        "metrics": tls_files(
            "metrics", metrics.tls_certificate, metrics.tls_key, metrics.tls_client_authorities, password
        ),
        "management": tls_files(
            "management",
            management.tls_certificate,
            management.tls_key,
            management.tls_client_authorities,
            password,
        ),
    }
