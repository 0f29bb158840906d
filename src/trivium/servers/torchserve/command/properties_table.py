"""Every property of TorchServe's `config.properties`, as data: the form of its value, its default, how it is served.

Nothing else says which properties there are; the table in `docs/torchserve.md` is made from this. Source: spec sheet
`torchserve`, section 2. Pure.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from urllib.parse import urlsplit

from trivium.servers.torchserve.words.allowed_urls import read_patterns
from trivium.servers.torchserve.words.layers import ENVELOPES
from trivium.servers.torchserve.words.start_models import read_snapshot, read_version_rules
from trivium.types.errors import ServeError
from trivium.types.listeners import BindAddress, Role
from trivium.types.spec import Origin

_LARGEST = 2**31 - 1
PREFIX = "TS_"
NEVER = "never"
"""Stands for the variable of a property that is taken from no environment."""


class PropertyKind(Enum):
    """The form of a property's value."""

    TEXT = "text"
    SWITCH = "true or false"
    NUMBER = "a whole number"
    MINUTES = "a number of minutes above 0"
    ADDRESS = "http://HOST[:PORT], https://HOST[:PORT] or unix:/PATH"
    HOST = "an address without scheme and port"
    CHOICE = "one of several words"
    PATTERN = "a regular expression"
    PATTERNS = "regular expressions with commas between"
    VERSIONS = 'JSON like {"NAME": {"VERSION": {"minWorkers": 1}}}'
    SNAPSHOT = 'JSON like {"models": {"NAME": {"VERSION": {"marName": "NAME.mar"}}}}'
    KEYSTORE = "PKCS12 (a JKS is converted by keytool -importkeystore -deststoretype pkcs12)"


class PropertySupport(Enum):
    """Says how a property is served."""

    YES = "yes"
    PARTLY = "partly"
    UNUSED = "read, and reported"
    NO = "no"


@dataclass(frozen=True, slots=True)
class ServerProperty:
    """One property. `least` and `most` bound a number; `how` says what is different here, or what to do instead. A
    value equal to `harmless`, or to the default, makes no difference where the property is not served. `variable` sets
    it, too, where that is not `TS_` and its name.
    """

    name: str
    kind: PropertyKind
    default: str = ""
    support: PropertySupport = PropertySupport.YES
    how: str = ""
    least: int = 0
    most: int = _LARGEST
    choices: tuple[str, ...] = ()
    variable: str = ""

    @property
    def environment_name(self) -> str:
        """Return the variable that sets it; empty for none."""
        if self.variable == NEVER:
            return ""
        return self.variable or PREFIX + self.name.upper()

    @property
    def expected(self) -> str:
        """Return what its value may be, for a sentence."""
        match self.kind:
            case PropertyKind.NUMBER:
                return f"a whole number from {self.least} to {self.most}"
            case PropertyKind.CHOICE:
                return f"one of {', '.join(self.choices)}"
            case _:
                return str(self.kind.value)

    def fault(self, text: str) -> str:
        """Say what is wrong with a value; empty where nothing is."""
        shown = f"{self.name}={text.strip()[:80]}"
        try:
            return "" if self._fits(text.strip()) else shown
        except ServeError as error:
            return f"{shown}: {error.message}"
        except (re.error, RecursionError, OverflowError) as error:
            return f"{shown} ({error})"

    def _fits(self, text: str) -> bool:
        match self.kind:
            case PropertyKind.SWITCH:
                return text.lower() in ("true", "false")
            case PropertyKind.NUMBER:
                return is_whole(text) and self.least <= int(text) <= self.most
            case PropertyKind.MINUTES:
                return bool(_DECIMAL.fullmatch(text)) and float(text) > 0
            case PropertyKind.ADDRESS:
                return read_address(text) is not None
            case PropertyKind.HOST:
                return bool(_HOST.fullmatch(text))
            case PropertyKind.CHOICE:
                return text.lower() in self.choices
            case PropertyKind.KEYSTORE:
                return text.upper() in ("PKCS12", "PFX")
            case PropertyKind.PATTERN:
                re.compile(text)
            case PropertyKind.PATTERNS:
                read_patterns(text)
            case PropertyKind.VERSIONS:
                read_version_rules(text, Origin("", self.name))
            case PropertyKind.SNAPSHOT:
                read_version_rules(read_snapshot(text).rules, Origin("", self.name))
        return True


_DECIMAL = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?", re.ASCII)
_HOST = re.compile(r"[A-Za-z0-9.:_-]+")


def is_whole(text: str) -> bool:
    """Tell whether a text is a whole number that may be compared with bounds."""
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 12


_T, _B, _N, _A = PropertyKind.TEXT, PropertyKind.SWITCH, PropertyKind.NUMBER, PropertyKind.ADDRESS
_PARTLY, _UNUSED, _NO = PropertySupport.PARTLY, PropertySupport.UNUSED, PropertySupport.NO
_JAVA = "there is no Java here: one event loop serves all connections"
_PORTS = "workers are reached by sockets that have no number"
_STARTER = "set threads and processors of the server's process instead (taskset, numactl, OMP_NUM_THREADS)"

_ROWS = (
    ServerProperty("inference_address", _A, "http://127.0.0.1:8080"),
    ServerProperty("management_address", _A, "http://127.0.0.1:8081"),
    ServerProperty("metrics_address", _A, "http://127.0.0.1:8082"),
    ServerProperty("grpc_inference_address", PropertyKind.HOST, "127.0.0.1"),
    ServerProperty("grpc_management_address", PropertyKind.HOST, "127.0.0.1"),
    ServerProperty("grpc_inference_port", _N, "7070", most=65535),
    ServerProperty("grpc_management_port", _N, "7071", most=65535),
    ServerProperty("grpc_inference_max_connection_age_ms", _N, "", least=1),
    ServerProperty("grpc_management_max_connection_age_ms", _N, "", least=1),
    ServerProperty("grpc_inference_max_connection_age_grace_ms", _N, "", least=1),
    ServerProperty("grpc_management_max_connection_age_grace_ms", _N, "", least=1),
    ServerProperty("enable_grpc_ssl", _B, "false"),
    ServerProperty("model_store", _T),
    ServerProperty(
        "workflow_store", _T, "", _UNUSED, "workflows are not served: call their models one by one"
    ),
    ServerProperty("load_models", _T),
    ServerProperty(
        "models",
        PropertyKind.VERSIONS,
        "",
        _PARTLY,
        "numbers of workers and batches and time-outs; parallelLevel and parallelType belong in model-config.yaml",
        variable=NEVER,
    ),
    ServerProperty(
        "model_snapshot",
        PropertyKind.SNAPSHOT,
        "",
        _PARTLY,
        "it goes before load_models; a model that cannot be loaded is a line of the log, and the others serve",
        variable=NEVER,
    ),
    ServerProperty("default_workers_per_model", _N, "0", most=1024),
    ServerProperty("job_queue_size", _N, "100", least=1),
    ServerProperty("default_response_timeout", _N, "120", least=1),
    ServerProperty("default_startup_timeout", _N, "120", least=1),
    ServerProperty(
        "unregister_model_timeout",
        _N,
        "120",
        _PARTLY,
        "an unregistration is answered at once; what the model has still in work so much later is ended",
    ),
    ServerProperty("max_request_size", _N, "6553500", least=1),
    ServerProperty(
        "max_response_size",
        _N,
        "6553500",
        _PARTLY,
        "it bounds each part of an answer, not those of a batch together, and no worker dies of one that is larger",
        least=1,
    ),
    ServerProperty("limit_max_image_pixels", _B, "true"),
    ServerProperty("decode_input_request", _B, "true"),
    ServerProperty("default_service_handler", _T),
    ServerProperty("service_envelope", PropertyKind.CHOICE, choices=ENVELOPES),
    ServerProperty(
        "install_py_dep_per_model",
        _B,
        "false",
        _NO,
        "packages of models are not installed: have them in the server's interpreter, and leave it out",
    ),
    ServerProperty("number_of_gpu", _N, "", most=1024),
    ServerProperty("number_of_netty_threads", _N, "0", _UNUSED, _JAVA),
    ServerProperty("netty_client_threads", _N, "0", _UNUSED, _JAVA),
    ServerProperty("prefer_direct_buffer", _B, "false", _UNUSED, _JAVA),
    ServerProperty("use_native_io", _B, "true", _UNUSED, _JAVA, variable=NEVER),
    ServerProperty("io_ratio", _N, "50", _UNUSED, _JAVA, most=100, variable=NEVER),
    ServerProperty("async_logging", _B, "false", _UNUSED, "no request waits for a log, whatever it says"),
    ServerProperty("vmargs", _T, "", _UNUSED, _JAVA, variable=NEVER),
    ServerProperty("blacklist_env_vars", PropertyKind.PATTERN),
    ServerProperty(
        "allowed_urls",
        PropertyKind.PATTERNS,
        "",
        _PARTLY,
        "without it models come from the model store alone, where the original takes any URL; a pattern has to name "
        "its host literally, like https://models\\.example\\.org/.*",
    ),
    ServerProperty("use_env_allowed_urls", _B, "false", variable=NEVER),
    ServerProperty("cors_allowed_origin", _T),
    ServerProperty("cors_allowed_methods", _T),
    ServerProperty("cors_allowed_headers", _T),
    ServerProperty(
        "keystore",
        _T,
        "",
        _PARTLY,
        "the package cryptography reads it (extra pkcs12); certificate_file goes before it",
    ),
    ServerProperty("keystore_pass", _T, "changeit"),
    ServerProperty(
        "keystore_type",
        PropertyKind.KEYSTORE,
        "PKCS12",
        _PARTLY,
        "PKCS12 alone: convert a JKS with keytool -importkeystore -deststoretype pkcs12",
    ),
    ServerProperty("private_key_file", _T),
    ServerProperty("certificate_file", _T),
    ServerProperty("enable_metrics_api", _B, "true"),
    ServerProperty(
        "metrics_mode",
        PropertyKind.CHOICE,
        "log",
        choices=("log", "prometheus", "legacy"),
    ),
    ServerProperty("metrics_config", _T),
    ServerProperty("model_metrics_auto_detect", _B, "false"),
    ServerProperty("disable_system_metrics", _B, "false"),
    ServerProperty("metric_time_interval", _N, "60", least=1, variable=NEVER),
    ServerProperty(
        "system_metrics_cmd",
        _T,
        "",
        _PARTLY,
        "without it the server measures the machine by itself; with it workers' interpreter is given these words, in "
        "the current folder",
        variable=NEVER,
    ),
    ServerProperty("initial_worker_port", _N, "9000", _UNUSED, _PORTS, most=65535),
    ServerProperty("initial_distribution_port", _N, "29500", _UNUSED, "free ports are taken", most=65535),
    ServerProperty("disable_token_authorization", _B, "false"),
    ServerProperty(
        "token_expiration_min", PropertyKind.MINUTES, "60", variable="TS_TOKEN_EXPIRATION_TIME_MIN"
    ),
    ServerProperty("enable_model_api", _B, "false"),
    ServerProperty(
        "ts_open_inference_protocol",
        PropertyKind.CHOICE,
        "false",
        choices=("true", "false", "oip"),
        variable="TS_OPEN_INFERENCE_PROTOCOL",
    ),
    ServerProperty(
        "ts_header_key_sequence_id",
        _T,
        "ts_request_sequence_id",
        variable="TS_HEADER_KEY_SEQUENCE_ID",
    ),
    ServerProperty(
        "ts_header_key_sequence_start",
        _T,
        "ts_request_sequence_start",
        variable="TS_HEADER_KEY_SEQUENCE_START",
    ),
    ServerProperty(
        "ts_header_key_sequence_end",
        _T,
        "ts_request_sequence_end",
        variable="TS_HEADER_KEY_SEQUENCE_END",
    ),
    ServerProperty("cpu_launcher_enable", _B, "false", _UNUSED, _STARTER),
    ServerProperty("cpu_launcher_args", _T, "", _UNUSED, _STARTER),
    ServerProperty("ipex_enable", _B, "false", _UNUSED, "have the handler import and use it"),
    ServerProperty("ipex_gpu_enable", _B, "false", _UNUSED, "have the handler import and use it"),
    ServerProperty(
        "debug",
        _B,
        "false",
        _NO,
        "workers are always started by the server: attach a debugger to one (TRIVIUM_DEBUGGABLE=true), and leave "
        "it out",
    ),
    ServerProperty("model_server_home", _T, "", _UNUSED, "the server's own code lies where it was installed"),
    ServerProperty("python", _T, "", variable=NEVER),
    ServerProperty(
        "plugins_path", _T, "", _UNUSED, "plug-ins are Java, which does not run here", variable=NEVER
    ),
    ServerProperty("cpp_log_config", _T, "", _UNUSED, "there are no workers in C++"),
    ServerProperty("version", _T, "", _UNUSED, "the version is the server's own", variable=NEVER),
    ServerProperty("enable_envvars_config", _B, "false", variable=NEVER),
    ServerProperty(
        "trivium_fetch_from",
        _T,
        "",
        _PARTLY,
        "Trivium's own: places that models may be fetched from, with commas between: scheme://host[:port]/prefix",
        variable=NEVER,
    ),
)
PROPERTIES: Mapping[str, ServerProperty] = {row.name: row for row in _ROWS}
"""Name -> its row."""

_DEFAULT_PORTS: Mapping[Role, tuple[int, int]] = {
    Role.INFERENCE: (80, 443),
    Role.MANAGEMENT: (8081, 8444),
    Role.METRICS: (8082, 8445),
}
"""Port of an address that names none, with and without TLS."""


@dataclass(frozen=True, slots=True)
class ListenerAddress:
    """Says where a listener listens, and whether over TLS."""

    bind: BindAddress
    is_tls: bool = False


def read_address(text: str, role: Role = Role.INFERENCE) -> ListenerAddress | None:
    """Read an address of a listener; None for what is none."""
    if text.startswith("unix:"):
        path = text.removeprefix("unix:").removeprefix("//")
        return ListenerAddress(BindAddress(path=path)) if path.startswith("/") else None
    try:
        parts = urlsplit(text)
        port = _DEFAULT_PORTS[role][parts.scheme == "https"] if parts.port is None else parts.port
    except ValueError:
        return None
    is_whole = (
        parts.scheme in ("http", "https")
        and parts.hostname
        and parts.path in ("", "/")
        and not (parts.query or parts.fragment or parts.username)
    )
    if not is_whole:
        return None
    return ListenerAddress(BindAddress(parts.hostname or "", port), parts.scheme == "https")
