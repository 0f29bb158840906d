"""Every option of the server, in groups.

A field here is a flag, an environment variable, a key of the file and a row of the manual at once: its flag, type,
default, bounds and help are all there is to say. Within its group an option has the name of its flag, without the
group's own prefix. Must not know where values come from: that is `loading`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from trivium.config.listener_options import (
    GrpcConfig,
    HttpConfig,
    ManagementConfig,
)
from trivium.config.signal_options import MetricsConfig, TracingConfig
from trivium.settings.option import ANY, LONG, option, size_option
from trivium.types.by_type import ByType
from trivium.types.listeners import is_loopback
from trivium.types.spec import Origin
from trivium.types.text_engines import WORDS as TEXT_ENGINES


@dataclass(frozen=True, slots=True)
class GeneralConfig:
    """Options of the whole server: its address, whose behaviour it shows, its log, and the limits that HTTP and gRPC
    share.
    """

    host: str = option(
        "--host",
        "127.0.0.1",
        "Address to listen on; one that is not loopback needs --keys or --open.",
        is_common=True,
    )
    profile: str = option(
        "--profile",
        "native",
        "Whose routes, error bodies and headers: {}.",
        is_common=True,
    )
    log_level: str = option(
        "--log-level",
        "warning",
        "debug, info, warning or error.",
        choices=("debug", "info", "warning", "error"),
        is_common=True,
    )
    log_format: str = option(
        "--log-format",
        "text",
        "text, or json: the server's, the workers' and the access log's lines are one JSON object each.",
        choices=("text", "json"),
    )
    access_log: str = option(
        "--access-log",
        "",
        "File for a JSON line per request or gRPC call; '-' is standard output; empty is none.",
        is_common=True,
    )
    name: str = option("--server-name", "", "Name in the v2 protocol's metadata; the profile's own if empty.")
    max_connections: int = option(
        "--max-connections", 4096, "Open connections, and gRPC calls, before new ones are refused.", (1, ANY)
    )
    max_body_bytes: int = size_option(
        "--max-body-bytes",
        256 * 2**20,
        "Largest request body, or gRPC message.",
        is_common=True,
    )
    max_buffered_bytes: int = size_option(
        "--max-buffered-bytes",
        2 * 2**30,
        "Request bodies held at once, over all connections, and as much again over gRPC.",
    )
    strict_requests: bool = option(
        "--strict-requests",
        False,
        "Refuse requests to generate that have fields without effect, in place of naming those in a header line.",
    )
    console: bool = option(
        "--console",
        False,
        "Serve the console at /console and its routes at /api/v1, where the profile does not by itself.",
    )
    console_port: int = option(
        "--console-port",
        -1,
        "Port for the console, with inference beside it; 0 takes a free one, -1 has none: then it is on HTTP's.",
        (-1, 65535),
    )
    drain_timeout: float = option(
        "--drain-timeout",
        25.0,
        "Seconds in which everything is to be finished and closed after SIGTERM; 5 s later the process is gone.",
        is_common=True,
    )


@dataclass(frozen=True, slots=True)
class ModelsConfig:
    """Options of models: how they are found, completed, loaded, queued for and cached."""

    control: str = option(
        "--model-control",
        "explicit",
        "Who changes what is served: clients (explicit), the folders as they change (poll), nobody (none).",
        choices=("explicit", "poll", "none"),
        is_common=True,
    )
    poll_seconds: float = option(
        "--poll-seconds", 15.0, "Seconds between two looks at the folders, with poll.", (0.01, ANY)
    )
    reload: bool = option(
        "--reload",
        False,
        "Load a model anew whenever one of its files is saved; while the new one cannot be loaded the old one serves.",
        is_common=True,
    )
    config_name: str = option(
        "--model-config-name",
        "",
        "Configuration to prefer in a model's folder configs, where its format has one.",
    )
    ready_despite_failures: bool = option(
        "--ready-despite-failures", False, "Be ready as soon as the server answers, whatever did not load."
    )
    unique_names: bool = option(
        "--unique-names", False, "Serve none of several models of one name, instead of the first."
    )
    default_rows: int = option(
        "--default-rows", 4, "Largest batch of a model whose file alone says that it batches.", (0, ANY)
    )
    no_completion: bool = option(
        "--no-completion",
        False,
        "Do not complete configurations of models: what is missing in one is an error.",
    )
    engine_parameters: str = option(
        "--engine-parameters",
        "",
        "Parameters of engines for models without a configuration of their own (a .gguf or .onnx file, a Hugging Face "
        "folder): ENGINE.NAME=VALUE, with commas between, like hf.slots=8,hf.dtype=bf16.",
    )
    text_engine: str = option(
        "--text-engine",
        "auto",
        "Who generates text with a Hugging Face folder or a .gguf file: hf, vllm, openvino, or whoever suits files and "
        "machine (auto). A model with settings of its own says it there.",
        choices=tuple(TEXT_ENGINES),
    )
    fetch_from: str = option(
        "--fetch-from",
        "",
        "Places that models may be fetched from, with commas between: scheme://host[:port]/prefix, with http, https or "
        "s3; hf for the Hugging Face hub, hf://ORG or hf://ORG/MODEL for a part of it. A host that is not public is "
        "reached only by its address, named here.",
        is_common=True,
    )
    fetch_bytes: int = size_option(
        "--fetch-bytes", 2 * 2**30, "Bytes that are fetched for one model at most.", (1, ANY)
    )
    fetch_seconds: float = option(
        "--fetch-seconds", 600.0, "Seconds in which a model must have been fetched.", (0.1, LONG)
    )
    load_threads: int = option(
        "--load-threads", 4, "Models that are opened at the same time.", (1, 1024), is_common=True
    )
    load_retries: int = option(
        "--load-retries", 0, "How often loading a version is tried again after it failed.", (0, 1000)
    )
    install_packages: str = option(
        "--install-packages",
        "none",
        "Whose requirements.txt is installed, into an environment of the model's own: nobody's (none), that of models "
        "that the server starts with (start), or also that of models that clients register (all).",
        choices=("none", "start", "all"),
    )
    queue_items: int = option(
        "--queue-items",
        1000,
        "Requests that may wait per model before new ones are refused.",
        (1, ANY),
        is_common=True,
    )
    deferred_answers: int = option(
        "--deferred-answers",
        10_000,
        "Answers that are kept until they are fetched; more drop the oldest of the client that has most.",
        (1, ANY),
    )
    deferred_bytes: int = size_option(
        "--deferred-bytes", 256 * 2**20, "Bytes that such answers may take together.", (1, ANY)
    )
    deferred_seconds: float = option(
        "--deferred-seconds", 3600.0, "Seconds for which such an answer is kept.", (0.001, LONG)
    )
    unread_memory: int = size_option(
        "--unread-memory",
        64 * 2**20,
        "Bytes of streamed answers that are kept in memory for clients that read slower than others can wait.",
        (1, ANY),
    )
    unread_disk: int = size_option(
        "--unread-disk",
        2**30,
        "Further bytes of them that are kept in temporary files; one answer has a quarter of both at most.",
    )
    cache_bytes: int = size_option(
        "--cache-bytes",
        0,
        "Bytes of answers that are kept and given again, for models that ask for it; 0 for none.",
    )


@dataclass(frozen=True, slots=True)
class WorkersConfig:
    """Worker processes and the instances of models: when they are replaced and when they may run."""

    run_timeout: float = option(
        "--run-timeout",
        300.0,
        "Seconds that a run of a model may take that sets no bound of its own; 0 for any time.",
        (0, LONG),
        is_common=True,
    )
    startup_timeout: float = option(
        "--startup-timeout",
        300.0,
        "Seconds that an instance may take to open a model that sets no bound of its own, and a process to try it.",
        (0.1, LONG),
    )
    items: int = option(
        "--worker-items", 0, "Requests after which a worker process is replaced; 0 for never."
    )
    growth: int = size_option(
        "--worker-growth",
        0,
        "Bytes by which a worker process may grow before it is replaced; 0 for any growth.",
    )
    memory: int = size_option(
        "--worker-memory",
        0,
        "Bytes of resident memory beyond which a worker process is killed and replaced; 0 for any.",
        is_common=True,
    )
    processors: int = option(
        "--worker-processors", 0, "Processors that each worker process may use; 0 for all of them.", (0, 4096)
    )
    files: int = option(
        "--worker-files", 0, "Files that each worker process may have open; 0 for the server's own limit."
    )
    offline: bool = option("--worker-offline", False, "Worker processes have no network.")
    no_shared_processor: bool = option(
        "--no-shared-processor",
        False,
        "Never put instances on the event loop's processor, even where the two take turns.",
    )
    rate_limit: str = option(
        "--rate-limit",
        "off",
        "Do instances run only while the resources that their models claim are free? off or execution_count.",
        choices=("off", "execution_count"),
    )
    rate_limit_resources: str = option(
        "--rate-limit-resources",
        "",
        "How much there is of them: 'NAME:COUNT' or, on one GPU, 'NAME:COUNT:GPU', with commas between.",
    )

    @property
    def shares_processor(self) -> bool:
        """May instances be put on the event loop's processor?"""
        return not (self.no_shared_processor or self.processors)


@dataclass(frozen=True, slots=True)
class SecurityConfig:
    """Options of security: who may reach this server, and what clients may do."""

    open: bool = option(
        "--open",
        False,
        "Listen beyond loopback without keys, for anybody who reaches this machine.",
        is_common=True,
    )
    keys: str = option(
        "--keys",
        "",
        "TOML file with the keys that clients have to show, read again when it changes; `trivium key` makes one.",
        is_common=True,
    )
    keystore_password: str = option(
        "--keystore-password",
        "",
        "Password of the PKCS12 key stores; others see it on a command line: TRIVIUM_KEYSTORE_PASSWORD sets it, too.",
        is_secret=True,
    )
    allowed_hosts: str = option(
        "--allowed-hosts",
        "",
        "Names, with commas between, under which whoever changes something may ask for this server, beside localhost "
        "and addresses. Web pages of other servers may not, whatever the name.",
    )
    open_management: bool = option(
        "--open-management",
        False,
        "Let whoever reaches this server load, unload and change settings, beyond loopback, too; not with --keys.",
    )
    restricted_apis: str = option(
        "--restricted-apis",
        "",
        "Groups of v2 routes over HTTP, and the header that opens them: 'model-repository,logging:admin-key=SECRET'. "
        "Beyond loopback models can be loaded and unloaded so alone.",
        is_secret=True,
    )
    restricted_rpcs: str = option(
        "--restricted-rpcs",
        "",
        "As --restricted-apis, for gRPC: groups of RPCs that metadata open.",
        is_secret=True,
    )
    client_shared_memory: bool = option(
        "--client-shared-memory",
        False,
        "Let clients pass tensors in POSIX shared memory. For trusted ones only: one that shrinks its memory while "
        "it is read ends the server.",
    )
    debuggable: bool = option(
        "--debuggable",
        False,
        "Let debuggers look into the server, and core dumps be written; handlers can then read its memory, too.",
    )


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """All options of `trivium serve`, in groups. Sizes are bytes, times are seconds."""

    server: GeneralConfig = field(default_factory=GeneralConfig, metadata={"title": "Server"})
    http: HttpConfig = field(default_factory=HttpConfig, metadata={"title": "HTTP"})
    grpc: GrpcConfig = field(default_factory=GrpcConfig, metadata={"title": "gRPC"})
    management: ManagementConfig = field(default_factory=ManagementConfig, metadata={"title": "Management"})
    metrics: MetricsConfig = field(default_factory=MetricsConfig, metadata={"title": "Metrics"})
    tracing: TracingConfig = field(default_factory=TracingConfig, metadata={"title": "Tracing"})
    models: ModelsConfig = field(default_factory=ModelsConfig, metadata={"title": "Models"})
    workers: WorkersConfig = field(default_factory=WorkersConfig, metadata={"title": "Workers and instances"})
    security: SecurityConfig = field(default_factory=SecurityConfig, metadata={"title": "Security"})
    own: ByType = field(default_factory=ByType)
    """Options of each server that is stood in for, by their class."""
    origins: Mapping[str, Origin] = field(default_factory=dict, compare=False, repr=False)
    """Where each option was set that was, by its name."""

    @property
    def is_loopback(self) -> bool:
        """Is everything that listens reached from this machine alone?"""
        return not self.wide

    @property
    def wide(self) -> str:
        """The first option that has something listen beyond this machine, with its value; empty if none does."""
        on = {
            "--host": self.server.console_port >= 0 or not (self.http.no_http or self.http.socket),
            "--grpc-host": not self.grpc.no_grpc,
            "--metrics-host": self.metrics.port >= 0 and not self.metrics.no_metrics,
            "--management-host": self.management.is_on and not self.management.socket,
            "--management-grpc-host": self.management.grpc_port >= 0,
        }
        own = {
            "--grpc-host": self.grpc.host,
            "--metrics-host": self.metrics.host,
            "--management-host": self.management.host,
            "--management-grpc-host": self.management.grpc_host,
        }
        for name in (name for name, is_on in on.items() if is_on):
            host = own.get(name) or self.server.host
            if not is_loopback(host):
                return f"{name if own.get(name) else '--host'} {host}"
        return ""
