"""Every flag of `tritonserver`, as data: groups as in its usage text, names and defaults as there, helps our own.

Nothing else says which flags there are. The table in `docs/triton.md` is made from this. Source: spec sheet
`triton`, section 1.1.
"""

from collections.abc import Mapping

from trivium.servers.triton.command.flags import BOOL, FLOAT, INT, PRESENCE, TEXT, one_of
from trivium.settings.setting import Setting, Support

_T, _B, _I, _F, _S = TEXT, BOOL, INT, FLOAT, PRESENCE
_PARTLY, _UNUSED, _NO = Support.PARTLY, Support.REPORTED, Support.REFUSED

_LEVELS = ("none", "low", "medium", "high")
_PAIR = "<string>:<string>=<string>"
_SETTING = "<string>,<string>=<string>"
_PER_GPU = "<integer>:<integer>"
_NO_POOL = "memory is taken as it is needed"
_AS_TRACE = "As --trace-config."
_ONE_LOOP = "one event loop serves all connections"
_NO_LIBRARY = "there are no shared libraries to look for: engines come with Trivium and its extras"

GROUPS: Mapping[str, tuple[Setting, ...]] = {
    "Server": (
        Setting("--id", _T, "triton", "Name of this server, in its metadata."),
        Setting(
            "--exit-timeout-secs", _I, 30, "Seconds that requests in work get to finish on the way down."
        ),
    ),
    "Logging": (
        Setting(
            "--log-verbose", _I, 0, "From 1 on, messages for debugging, too.", _PARTLY, "one level of them"
        ),
        Setting("--log-info", _B, True, "Log what happens."),
        Setting("--log-warning", _B, True, "Log what may be wrong."),
        Setting("--log-error", _B, True, "Log what went wrong."),
        Setting("--log-format", one_of("default", "ISO8601"), "default", "How a line begins."),
        Setting("--log-file", _T, "", "File to log to, instead of standard error."),
    ),
    "Model Repository": (
        Setting("--model-store", _T, "", "Another name of --model-repository.", repeats=True),
        Setting(
            "--model-repository",
            _T,
            "",
            "Folder of model folders. A model whose name is in two of them is not available.",
            _PARTLY,
            "folders of this machine; addresses (s3://, gs://, as://) are refused: nothing is downloaded",
            repeats=True,
        ),
        Setting("--exit-on-error", _B, True, "End if a model does not load at the start."),
        Setting(
            "--disable-auto-complete-config", _S, False, "Complete no configuration; what lacks is an error."
        ),
        Setting(
            "--strict-readiness",
            _B,
            True,
            "Ready only while every model is, not as soon as the server answers.",
        ),
        Setting(
            "--model-control-mode",
            one_of("none", "poll", "explicit"),
            "none",
            "Who changes what is loaded: nobody, the folders (poll), or clients (explicit).",
        ),
        Setting(
            "--repository-poll-secs", _I, 15, "Seconds between two looks at the folders in the mode poll."
        ),
        Setting(
            "--load-model",
            _T,
            "",
            "Model to load at the start in the mode explicit; * for all.",
            repeats=True,
        ),
        Setting(
            "--model-config-name", _T, "", "Read configs/NAME.pbtxt of a model folder, where there is one."
        ),
        Setting("--model-load-thread-count", _I, 4, "Models that are opened at the same time."),
        Setting("--model-load-retry-count", _I, 0, "How often to try again to load a version that failed."),
        Setting(
            "--model-namespacing",
            _B,
            False,
            "Serve models of the same name from several repositories.",
            _NO,
            "a model's name is unique over all repositories: leave it out",
        ),
        Setting(
            "--enable-peer-access", _B, True, "Let GPUs read each other's memory.", _UNUSED, "engines decide"
        ),
    ),
    "HTTP": (
        Setting("--allow-http", _B, True, "Serve HTTP."),
        Setting("--http-address", _T, "0.0.0.0", "Address to listen on for HTTP."),
        Setting("--http-port", _I, 8000, "Port for HTTP."),
        Setting("--reuse-http-port", _B, False, "Share the port with other servers that do so, too."),
        Setting("--http-header-forward-pattern", _T, "", "Headers whose name it matches become parameters."),
        Setting("--http-max-input-size", _I, 2**26, "Bytes of a request's body, unpacked, too."),
        Setting("--http-thread-count", _I, 8, "Threads for HTTP.", _UNUSED, _ONE_LOOP),
        Setting(
            "--allow-client-shm",
            _B,
            True,
            "Let clients register shared memory.",
            how="the newest original has false",
        ),
        Setting(
            "--http-restricted-api",
            _T,
            "",
            "Groups of routes that a header opens: GROUP,GROUP:HEADER=VALUE.",
            repeats=True,
            usage=_PAIR,
        ),
    ),
    "GRPC": (
        Setting("--allow-grpc", _B, True, "Serve gRPC."),
        Setting("--grpc-address", _T, "0.0.0.0", "Address to listen on for gRPC."),
        Setting("--grpc-port", _I, 8001, "Port for gRPC."),
        Setting("--reuse-grpc-port", _B, False, "Share the port with other servers that do so, too."),
        Setting("--grpc-header-forward-pattern", _T, "", "Metadata whose name it matches become parameters."),
        Setting("--grpc-infer-allocation-pool-size", _I, 8, "Requests kept for reuse.", _UNUSED, _NO_POOL),
        Setting("--grpc-infer-thread-count", _I, 2, "Threads for gRPC.", _UNUSED, _ONE_LOOP),
        Setting(
            "--grpc-max-response-pool-size", _I, 2**31 - 1, "Responses kept for reuse.", _UNUSED, _NO_POOL
        ),
        Setting("--grpc-use-ssl", _B, False, "Serve gRPC over TLS."),
        Setting("--grpc-use-ssl-mutual", _B, False, "... to clients that have a certificate of the root's."),
        Setting("--grpc-server-cert", _T, "", "PEM file with the server's certificate."),
        Setting("--grpc-server-key", _T, "", "PEM file with its key."),
        Setting("--grpc-root-cert", _T, "", "PEM file with the clients' authorities."),
        Setting(
            "--grpc-infer-response-compression-level", one_of(*_LEVELS), "none", "How to pack responses."
        ),
        Setting("--grpc-keepalive-time", _I, 7200000, "Milliseconds of silence before a ping."),
        Setting("--grpc-keepalive-timeout", _I, 20000, "Milliseconds in which it must be answered."),
        Setting("--grpc-keepalive-permit-without-calls", _B, False, "Ping without calls in flight, too."),
        Setting(
            "--grpc-http2-max-pings-without-data", _I, 2, "Pings in a row without data; 0 for any number."
        ),
        Setting(
            "--grpc-http2-min-recv-ping-interval-without-data",
            _I,
            300000,
            "Milliseconds that clients leave between pings.",
        ),
        Setting(
            "--grpc-http2-max-ping-strikes", _I, 2, "Pings too early before a client is cut off; 0 for any."
        ),
        Setting("--grpc-max-connection-age", _I, 0, "Milliseconds that a connection may last; 0 for ever."),
        Setting(
            "--grpc-max-connection-age-grace", _I, 0, "Milliseconds for its calls to finish then; 0 for ever."
        ),
        Setting(
            "--grpc-restricted-protocol",
            _T,
            "",
            "Groups of RPCs that metadata open: GROUP,GROUP:NAME=VALUE.",
            repeats=True,
            usage=_PAIR,
        ),
    ),
    "Sagemaker": (
        Setting("--allow-sagemaker", _B, False, "Serve SageMaker's routes.", _NO, "leave it out"),
        Setting("--sagemaker-port", _I, 8080, "Port for them.", _UNUSED, "they are not served"),
        Setting("--sagemaker-safe-port-range", _T, "", "Ports for others.", _UNUSED, "they are not served"),
        Setting("--sagemaker-thread-count", _I, 8, "Threads for them.", _UNUSED, "they are not served"),
    ),
    "Vertex": (
        Setting("--allow-vertex-ai", _B, False, "Serve Vertex AI's routes.", _NO, "leave it out"),
        Setting("--vertex-ai-port", _I, 8080, "Port for them.", _UNUSED, "they are not served"),
        Setting("--vertex-ai-thread-count", _I, 8, "Threads for them.", _UNUSED, "they are not served"),
        Setting(
            "--vertex-ai-default-model", _T, "", "Model for requests without.", _UNUSED, "they are not served"
        ),
    ),
    "Metrics": (
        Setting("--allow-metrics", _B, True, "Serve metrics for Prometheus."),
        Setting("--allow-gpu-metrics", _B, True, "... those of the GPUs among them."),
        Setting("--allow-cpu-metrics", _B, True, "... those of the CPU among them."),
        Setting("--metrics-address", _T, "", "Address to listen on for metrics; that of HTTP unless given."),
        Setting("--metrics-port", _I, 8002, "Port for metrics."),
        Setting(
            "--metrics-interval-ms", _F, 2000.0, "Milliseconds for which a reading of the machine is good."
        ),
        Setting(
            "--metrics-config", _T, "", "Which latencies: KEY=VALUE.", repeats=True, usage="<string>=<string>"
        ),
    ),
    "Tracing": (
        Setting(
            "--trace-config",
            _T,
            "",
            "What of requests is traced, and to where: MODE,KEY=VALUE or KEY=VALUE.",
            repeats=True,
            usage=_SETTING,
        ),
    ),
    "Backend": (
        Setting(
            "--backend-directory",
            _T,
            "/opt/tritonserver/backends",
            "Folder of backends.",
            _UNUSED,
            _NO_LIBRARY,
        ),
        Setting(
            "--backend-config",
            _T,
            "",
            "Setting of a backend: BACKEND,KEY=VALUE.",
            _PARTLY,
            "default-max-batch-size; other settings are reported",
            repeats=True,
            usage=_SETTING,
        ),
    ),
    "Repository Agent": (
        Setting(
            "--repoagent-directory",
            _T,
            "/opt/tritonserver/repoagents",
            "Folder of agents.",
            _UNUSED,
            _NO_LIBRARY,
        ),
    ),
    "Response Cache": (
        Setting(
            "--cache-config",
            _T,
            "",
            "local,size=BYTES",
            _PARTLY,
            "the cache local",
            repeats=True,
            usage=_SETTING,
        ),
        Setting(
            "--cache-directory", _T, "/opt/tritonserver/caches", "Folder of caches.", _UNUSED, _NO_LIBRARY
        ),
    ),
    "Rate Limiter": (
        Setting(
            "--rate-limit", one_of("execution_count", "off"), "off", "Run by the resources of instances."
        ),
        Setting(
            "--rate-limit-resource", _T, "", "NAME:COUNT or NAME:COUNT:DEVICE.", repeats=True, usage=_PER_GPU
        ),
    ),
    "Memory/Device Management": (
        Setting("--pinned-memory-pool-byte-size", _I, 2**28, "Bytes of pinned memory.", _UNUSED, _NO_POOL),
        Setting(
            "--cuda-memory-pool-byte-size",
            _T,
            "",
            "GPU:BYTES",
            _UNUSED,
            _NO_POOL,
            repeats=True,
            usage=_PER_GPU,
        ),
        Setting(
            "--cuda-virtual-address-size",
            _T,
            "",
            "GPU:BYTES",
            _UNUSED,
            _NO_POOL,
            repeats=True,
            usage=_PER_GPU,
        ),
        Setting(
            "--min-supported-compute-capability", _F, 6.0, "Of a GPU to be used.", _UNUSED, "engines decide"
        ),
        Setting(
            "--buffer-manager-thread-count",
            _I,
            0,
            "Threads to copy tensors.",
            _UNUSED,
            "they are not copied so",
        ),
        Setting(
            "--host-policy",
            _T,
            "",
            "POLICY,KEY=VALUE: where threads run.",
            _UNUSED,
            "the operating system places them",
            repeats=True,
            usage=_SETTING,
        ),
        Setting(
            "--model-load-gpu-limit",
            _T,
            "",
            "DEVICE:FRACTION: memory beyond which loads are refused.",
            _UNUSED,
            "engines report no memory",
            repeats=True,
            usage="<device_id>:<fraction>",
        ),
    ),
    "DEPRECATED": (
        Setting("--strict-model-config", _B, False, "As --disable-auto-complete-config."),
        Setting("--response-cache-byte-size", _I, 0, "As --cache-config=local,size=BYTES."),
        Setting("--trace-file", _T, "", _AS_TRACE),
        Setting("--trace-level", _T, "", _AS_TRACE, repeats=True),
        Setting("--trace-rate", _I, 1000, _AS_TRACE),
        Setting("--trace-count", _I, -1, _AS_TRACE),
        Setting("--trace-log-frequency", _I, 0, _AS_TRACE),
    ),
}
"""Group -> its flags."""

FLAGS: Mapping[str, Setting] = {flag.name: flag for flags in GROUPS.values() for flag in flags}
"""By name."""
