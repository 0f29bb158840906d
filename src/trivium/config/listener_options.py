"""The options of the listeners that serve models: HTTP, gRPC, and management where that is apart.

Part of `options`, which says how an option is read.
"""

from dataclasses import dataclass
from typing import Any

from trivium.settings.option import ANY, INT, LONG, option, size_option

_TLS = {
    "certificate": "PEM file with the certificate chain; with --{}-tls-key {} is served over TLS alone. "
    "Without that, a PKCS12 key store (extra pkcs12).",
    "key": "PEM file with that certificate's private key, not encrypted.",
    "client-authorities": "PEM file with authorities: only clients that have a certificate of theirs may connect.",
}


def tls_option(listener: str, file: str, what: str) -> Any:
    """Make the option for one of the three files of a listener's TLS; `what` is served there, in words."""
    return option(f"--{listener}-tls-{file}", "", _TLS[file].format(listener, what))


@dataclass(frozen=True, slots=True)
class HttpConfig:
    """The HTTP front end: its port, its limits and its timeouts."""

    port: int = option("--http-port", 8080, "Port for HTTP; 0 takes a free one.", (0, 65535), is_common=True)
    no_http: bool = option("--no-http", False, "Do not serve HTTP.")
    socket: str = option("--http-socket", "", "Path of a Unix socket for HTTP, in place of address and port.")
    reuse_http_port: bool = option(
        "--reuse-http-port", False, "Share the HTTP port with other servers that do so, too."
    )
    max_header_bytes: int = size_option("--max-header-bytes", 32 * 2**10, "Largest request head.", (1, ANY))
    idle_timeout: float = option(
        "--idle-timeout", 75.0, "Seconds before a connection without a request is closed."
    )
    header_timeout: float = option(
        "--header-timeout", 10.0, "Seconds in which a request head must have arrived."
    )
    body_timeout: float = option(
        "--body-timeout", 20.0, "Seconds for a body, plus its size at the slowest rate."
    )
    write_timeout: float = option(
        "--write-timeout", 30.0, "Seconds in which a client must take its answer at the slowest rate."
    )
    part_timeout: float = option(
        "--part-timeout",
        0.0,
        "Seconds without a further part, after which an answer in parts breaks off; 0: never.",
    )
    half_close_wait: float = option(
        "--half-close-wait",
        2.0,
        "Seconds in which the answer to a client that has closed its sending side has to begin, else its request is "
        "cancelled; 0: never.",
    )
    slowest_rate: int = size_option(
        "--slowest-rate",
        16 * 2**10,
        "Bytes per second below which a client is too slow.",
        (1, ANY),
    )
    tls_certificate: str = tls_option("http", "certificate", "HTTP")
    tls_key: str = tls_option("http", "key", "HTTP")
    tls_client_authorities: str = tls_option("http", "client-authorities", "HTTP")
    cors: str = option(
        "--cors",
        "",
        "The pages that may call this server from a browser, like https://app.example, or * for all: fills the three "
        "options --cors-allowed-*, which go before it. Empty is none.",
        is_common=True,
    )
    cors_allowed_origin: str = option(
        "--cors-allowed-origin",
        "",
        "Value of the header Access-Control-Allow-Origin of every answer: the pages that may read them; empty is none.",
    )
    cors_allowed_methods: str = option(
        "--cors-allowed-methods", "", "The same for Access-Control-Allow-Methods."
    )
    cors_allowed_headers: str = option(
        "--cors-allowed-headers", "", "The same for Access-Control-Allow-Headers."
    )
    forward_headers: str = option(
        "--forward-headers",
        "",
        "Regular expression: v2 requests' HTTP headers whose whole name (lower case) it matches become parameters.",
    )


@dataclass(frozen=True, slots=True)
class GrpcConfig:
    """The gRPC front end: its address, TLS, keep-alive and limits."""

    port: int = option("--grpc-port", 8001, "Port for gRPC; 0 takes a free one.", (0, 65535), is_common=True)
    no_grpc: bool = option("--no-grpc", False, "Do not serve gRPC.", is_common=True)
    host: str = option("--grpc-host", "", "Address to listen on for gRPC, where it is not that of --host.")
    reuse_grpc_port: bool = option(
        "--reuse-grpc-port", False, "Share the gRPC port with other servers that do so, too."
    )
    tls_certificate: str = tls_option("grpc", "certificate", "gRPC")
    tls_key: str = tls_option("grpc", "key", "gRPC")
    tls_client_authorities: str = tls_option("grpc", "client-authorities", "gRPC")
    keepalive_time: float = option(
        "--grpc-keepalive-time",
        7200.0,
        "Seconds of silence before a gRPC connection is pinged.",
        (0.001, LONG),
    )
    keepalive_timeout: float = option(
        "--grpc-keepalive-timeout", 20.0, "Seconds in which that ping must be answered.", (0.001, LONG)
    )
    min_ping_interval: float = option(
        "--grpc-min-ping-interval",
        300.0,
        "Seconds that gRPC clients must leave between their own pings.",
        (0, LONG),
    )
    pings_without_calls: bool = option(
        "--grpc-pings-without-calls",
        False,
        "Ping gRPC connections that have no call, and let their clients do so.",
    )
    pings_without_data: int = option(
        "--grpc-pings-without-data",
        2,
        "Pings in a row on a gRPC connection without data between; 0 for any.",
        (0, INT),
    )
    ping_strikes: int = option(
        "--grpc-ping-strikes", 2, "Pings too early that cut a gRPC client off; 0 for none.", (0, INT)
    )
    idle_timeout: float = option(
        "--grpc-idle-timeout",
        300.0,
        "Seconds before a gRPC connection without a call is closed; 0 for never.",
        (0, LONG),
    )
    message_timeout: float = option(
        "--grpc-message-timeout",
        20.0,
        "Seconds for a gRPC message, plus its size at the slowest rate.",
        (0.001, LONG),
    )
    connection_age: float = option(
        "--grpc-connection-age", 0.0, "Seconds that a gRPC connection lasts; 0 for ever.", (0, LONG)
    )
    connection_grace: float = option(
        "--grpc-connection-grace", 0.0, "Seconds for its calls to finish; 0 for ever.", (0, LONG)
    )
    compression: str = option(
        "--grpc-compression", "none", "How gRPC responses are packed.", choices=("none", "gzip", "deflate")
    )
    message_bytes: int = size_option(
        "--grpc-message-bytes",
        0,
        "Largest gRPC message, where it is not --max-body-bytes; 0 if it is.",
        (0, INT),
    )
    forward_metadata: str = option(
        "--forward-metadata", "", "Regular expression: as --forward-headers, for gRPC's metadata."
    )


@dataclass(frozen=True, slots=True)
class ManagementConfig:
    """The listener for what manages models, where it is not that of HTTP."""

    port: int = option(
        "--management-port",
        -1,
        "Port for managing models alone; 0 takes a free one, -1 has none: then it is done over HTTP's.",
        (-1, 65535),
    )
    host: str = option(
        "--management-host", "", "Address to listen on for management, where it is not that of --host."
    )
    socket: str = option(
        "--management-socket", "", "Path of a Unix socket for management, in place of address and port."
    )
    tls_certificate: str = tls_option("management", "certificate", "management")
    tls_key: str = tls_option("management", "key", "management")
    tls_client_authorities: str = tls_option("management", "client-authorities", "management")

    grpc_port: int = option(
        "--management-grpc-port",
        -1,
        "Port for managing models alone over gRPC; 0 takes a free one, -1 has none: then it is done over gRPC's.",
        (-1, 65535),
    )
    grpc_host: str = option(
        "--management-grpc-host",
        "",
        "Address to listen on for management over gRPC, where it is not that of --host.",
    )
    grpc_connection_age: float = option(
        "--management-grpc-connection-age",
        -1.0,
        "Seconds that a connection to that port lasts; 0 for ever, -1 as --grpc-connection-age says.",
        (-1, LONG),
    )
    grpc_connection_grace: float = option(
        "--management-grpc-connection-grace",
        -1.0,
        "Seconds for its calls to finish; 0 for ever, -1 as --grpc-connection-grace says.",
        (-1, LONG),
    )

    @property
    def is_on(self) -> bool:
        """Is there a listener for management alone?"""
        return self.port >= 0 or bool(self.socket)
