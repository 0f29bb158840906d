"""Every key of DJL Serving's `config.properties`, as data: the form of its value, its default, and how it is served.

Nothing else says which keys there are; the table in `docs/djl.md` is made from this. Source: spec sheet `djl`, section
1.3. Pure.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from urllib.parse import urlsplit

from trivium.servers.djl.words.error_rate_policy import EXPECTED, read_rate
from trivium.servers.djl.words.model_urls import read_devices, read_list
from trivium.types.errors import ServeError
from trivium.types.listeners import BindAddress

_LARGEST = 2**31 - 1
_PORTS = {"http": 80, "https": 443}


class KeyKind(Enum):
    """The form of a key's value."""

    TEXT = "text"
    SWITCH = "true or false"
    NUMBER = "a whole number"
    ADDRESS = "http://HOST[:PORT], https://HOST[:PORT] or unix:/PATH"
    MODELS = "ALL, NONE or model URLs"
    DEVICES = "*, or devices separated by semicolons"
    STATUS = "a status from 400 to 599"
    PATTERN = "a regular expression"
    RATE = EXPECTED
    ACCESS = "open or closed"
    KEYSTORE = "PKCS12 (a JKS is converted by keytool -importkeystore -deststoretype pkcs12)"


class KeySupport(Enum):
    """Says how a key is served."""

    YES = "yes"
    PARTLY = "partly"
    UNUSED = "read, and reported"
    NO = "no"


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """One key. `least` and `most` bound a number; `how` says what is different here, or what to do instead."""

    name: str
    kind: KeyKind
    default: str = ""
    support: KeySupport = KeySupport.YES
    how: str = ""
    least: int = 0
    most: int = _LARGEST

    @property
    def expected(self) -> str:
        """Return what its value may be, for a sentence."""
        if self.kind is KeyKind.NUMBER:
            return f"a whole number from {self.least} to {self.most}"
        return str(self.kind.value)

    def fault(self, text: str) -> str:
        """Say what is wrong with a value; empty where nothing is."""
        try:
            return self._fault(text.strip())
        except ServeError as error:
            return error.message

    def _fault(self, text: str) -> str:
        shown = f"{self.name}={text[:80]}"
        match self.kind:
            case KeyKind.SWITCH:
                return "" if text.lower() in ("true", "false") else shown
            case KeyKind.NUMBER | KeyKind.STATUS:
                least, most = (400, 599) if self.kind is KeyKind.STATUS else (self.least, self.most)
                is_number = (
                    text.removeprefix("-").isascii() and text.removeprefix("-").isdigit() and len(text) < 12
                )
                return "" if is_number and least <= int(text) <= most else shown
            case KeyKind.ACCESS:
                return "" if text.lower() in ("open", "closed") else shown
            case KeyKind.ADDRESS:
                return "" if read_address(text) else shown
            case KeyKind.KEYSTORE:
                return "" if text.upper() in ("PKCS12", "PFX") else shown
            case KeyKind.RATE:
                return "" if read_rate(text) else shown
            case KeyKind.MODELS:
                if text.upper() not in ("ALL", "NONE"):
                    read_list(text)
            case KeyKind.DEVICES:
                read_devices(text)
            case KeyKind.PATTERN:
                try:
                    re.compile(text)
                except re.error as error:
                    return f"{shown} ({error})"
        return ""


_T, _B, _N, _A = KeyKind.TEXT, KeyKind.SWITCH, KeyKind.NUMBER, KeyKind.ADDRESS
_S = KeyKind.STATUS
_PARTLY, _UNUSED, _NO = KeySupport.PARTLY, KeySupport.UNUSED, KeySupport.NO
_LOOP = "one event loop serves all connections"

_ROWS = (
    ConfigKey("inference_address", _A, "http://127.0.0.1:8080"),
    ConfigKey("management_address", _A, "http://127.0.0.1:8080"),
    ConfigKey("cluster_address", _A, "http://127.0.0.1:8888", _UNUSED, "a server runs on one machine"),
    ConfigKey("model_store", _T),
    ConfigKey("load_models", KeyKind.MODELS, "ALL"),
    ConfigKey("wait_model_loading", _B, "true"),
    ConfigKey("allow_multi_status", _B, "false"),
    ConfigKey("load_on_devices", KeyKind.DEVICES, "*"),
    ConfigKey("job_queue_size", _N, "1000", least=1),
    ConfigKey("batch_size", _N, "1", least=1),
    ConfigKey("max_batch_delay", _N, "100"),
    ConfigKey("max_idle_time", _N, "60"),
    ConfigKey("reserved_memory_mb", _N, "500"),
    ConfigKey("max_request_size", _N, "67108864", least=1),
    ConfigKey("chunked_read_timeout", _N, "120", least=1),
    ConfigKey("number_of_netty_threads", _N, "0", _UNUSED, _LOOP),
    ConfigKey("use_native_io", _B, "true", _UNUSED, _LOOP),
    ConfigKey("io_ratio", _N, "50", _UNUSED, _LOOP, most=100),
    ConfigKey(
        "model_url_pattern",
        KeyKind.PATTERN,
        "",
        _PARTLY,
        "a URL in a header has to match, too; not with keys, nor with trivium_management=closed beyond this machine",
    ),
    ConfigKey("cors_allowed_origin", _T),
    ConfigKey("cors_allowed_methods", _T),
    ConfigKey("cors_allowed_headers", _T),
    ConfigKey(
        "keystore",
        _T,
        "",
        _PARTLY,
        "the package cryptography reads it (extra pkcs12); certificate_file goes before it",
    ),
    ConfigKey("keystore_pass", _T, "changeit"),
    ConfigKey(
        "keystore_type",
        KeyKind.KEYSTORE,
        "PKCS12",
        _PARTLY,
        "PKCS12 alone: convert a JKS with keytool -importkeystore -deststoretype pkcs12",
    ),
    ConfigKey("private_key_file", _T),
    ConfigKey("certificate_file", _T),
    ConfigKey("plugin_folder", _T, "plugins", _UNUSED, "plug-ins are Java, which does not run here"),
    ConfigKey("error_rate_wlm", KeyKind.RATE),
    ConfigKey("error_rate_server", KeyKind.RATE),
    ConfigKey("error_rate_model", KeyKind.RATE),
    ConfigKey("error_rate_any", KeyKind.RATE),
    ConfigKey("bad_request_http_code", _S, "400"),
    ConfigKey("wlm_error_http_code", _S, "503"),
    ConfigKey("throttle_error_http_code", _S, "503"),
    ConfigKey("timeout_http_code", _S, "400", _UNUSED, "the original never sends it either"),
    ConfigKey("server_error_http_code", _S, "500"),
    ConfigKey("request_id_header_key", _T, "x-request-id"),
    ConfigKey("grpc_address", _T, "127.0.0.1", _PARTLY, "gRPC is served where this or grpc_port is set"),
    ConfigKey(
        "grpc_port", _N, "8082", _PARTLY, "gRPC is served where this or grpc_address is set", most=65535
    ),
    ConfigKey("WEB_ROOT", _T, "public", _NO, "files are served by a web server; leave it out"),
    ConfigKey(
        "trivium_management",
        KeyKind.ACCESS,
        "open",
        _PARTLY,
        "Trivium's own: closed lets models be managed by a management_address of this machine alone",
    ),
    ConfigKey(
        "trivium_install_packages",
        _T,
        "start",
        _PARTLY,
        "Trivium's own: whose requirements.txt is installed: none, start (that of models which the server starts with) "
        "or all (also that of models which clients register)",
    ),
)
KEYS: Mapping[str, ConfigKey] = {row.name: row for row in _ROWS}
"""Key -> its row."""


@dataclass(frozen=True, slots=True)
class ServingAddress:
    """Says where a listener listens, and whether over TLS."""

    bind: BindAddress
    is_tls: bool = False


def read_address(text: str) -> ServingAddress | None:
    """Read an address of a listener; None for what is none."""
    if text.startswith("unix:"):
        path = text.removeprefix("unix:").removeprefix("//")
        return ServingAddress(BindAddress(path=path)) if path.startswith("/") else None
    try:
        parts = urlsplit(text)
        port = _PORTS[parts.scheme] if parts.port is None else parts.port
    except (ValueError, KeyError):
        return None
    is_whole = (
        parts.hostname and parts.path in ("", "/") and not (parts.query or parts.fragment or parts.username)
    )
    if not is_whole or port > 65534:
        return None
    return ServingAddress(BindAddress(parts.hostname or "", port), parts.scheme == "https")
