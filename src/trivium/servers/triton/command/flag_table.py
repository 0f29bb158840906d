"""Every flag of `tritonserver`, as data: groups as in its usage text, names and defaults as there, helps our own.

Nothing else says which flags there are. The table in `docs/triton.md` is made from this. Source: spec sheet
`triton`, section 1.1.
"""

from collections.abc import Mapping

from trivium.servers.triton.command.flags import Flag, FlagKind, Support

_T, _B, _I, _F, _S = FlagKind.TEXT, FlagKind.BOOL, FlagKind.INT, FlagKind.FLOAT, FlagKind.SWITCH
_PARTLY, _UNUSED, _NO = Support.PARTLY, Support.UNUSED, Support.NO

_LEVELS = ("none", "low", "medium", "high")
_PAIR = "<string>:<string>=<string>"
_SETTING = "<string>,<string>=<string>"
_PER_GPU = "<integer>:<integer>"
_NO_POOL = "memory is taken as it is needed"
_AS_TRACE = "As --trace-config."
_ONE_LOOP = "one event loop serves all connections"
_NO_LIBRARY = "there are no shared libraries to look for: engines come with Trivium and its extras"

GROUPS: Mapping[str, tuple[Flag, ...]] = {
    "Server": (
        Flag("--id", _T, "triton", "Name of this server, in its metadata."),
        Flag("--exit-timeout-secs", _I, 30, "Seconds that requests in work get to finish on the way down."),
    ),
    "Logging": (
        Flag("--log-verbose", _I, 0, "From 1 on, messages for debugging, too.", _PARTLY, "one level of them"),
        Flag("--log-info", _B, True, "Log what happens."),
        Flag("--log-warning", _B, True, "Log what may be wrong."),
        Flag("--log-error", _B, True, "Log what went wrong."),
        Flag("--log-format", _T, "default", "How a line begins.", choices=("default", "ISO8601")),
        Flag("--log-file", _T, "", "File to log to, instead of standard error."),
    ),
    "Model Repository": (
        Flag("--model-store", _T, "", "Another name of --model-repository.", repeats=True),
        Flag(
            "--model-repository",
            _T,
            "",
            "Folder of model folders. A model whose name is in two of them is not available.",
            _PARTLY,
            "folders of this machine; addresses (s3://, gs://, as://) are refused: nothing is downloaded",
            repeats=True,
        ),
        Flag("--exit-on-error", _B, True, "End if a model does not load at the start."),
        Flag(
            "--disable-auto-complete-config", _S, False, "Complete no configuration; what lacks is an error."
        ),
        Flag(
            "--strict-readiness",
            _B,
            True,
            "Ready only while every model is, not as soon as the server answers.",
        ),
        Flag(
            "--model-control-mode",
            _T,
            "none",
            "Who changes what is loaded: nobody, the folders (poll), or clients (explicit).",
            choices=("none", "poll", "explicit"),
        ),
        Flag("--repository-poll-secs", _I, 15, "Seconds between two looks at the folders in the mode poll."),
        Flag(
            "--load-model",
            _T,
            "",
            "Model to load at the start in the mode explicit; * for all.",
            repeats=True,
        ),
        Flag("--model-config-name", _T, "", "Read configs/NAME.pbtxt of a model folder, where there is one."),
        Flag("--model-load-thread-count", _I, 4, "Models that are opened at the same time."),
        Flag("--model-load-retry-count", _I, 0, "How often to try again to load a version that failed."),
        Flag(
            "--model-namespacing",
            _B,
            False,
            "Serve models of the same name from several repositories.",
            _NO,
            "a model's name is unique over all repositories",
        ),
        Flag(
            "--enable-peer-access", _B, True, "Let GPUs read each other's memory.", _UNUSED, "engines decide"
        ),
    ),
    "HTTP": (
        Flag("--allow-http", _B, True, "Serve HTTP."),
        Flag("--http-address", _T, "0.0.0.0", "Address to listen on for HTTP."),
        Flag("--http-port", _I, 8000, "Port for HTTP."),
        Flag("--reuse-http-port", _B, False, "Share the port with other servers that do so, too."),
        Flag("--http-header-forward-pattern", _T, "", "Headers whose name it matches become parameters."),
        Flag("--http-max-input-size", _I, 2**26, "Bytes of a request's body, unpacked, too."),
        Flag("--http-thread-count", _I, 8, "Threads for HTTP.", _UNUSED, _ONE_LOOP),
        Flag(
            "--allow-client-shm",
            _B,
            True,
            "Let clients register shared memory.",
            how="the newest original has false",
        ),
        Flag(
            "--http-restricted-api",
            _T,
            "",
            "Groups of routes that a header opens: GROUP,GROUP:HEADER=VALUE.",
            repeats=True,
            form=_PAIR,
        ),
    ),
    "GRPC": (
        Flag("--allow-grpc", _B, True, "Serve gRPC."),
        Flag("--grpc-address", _T, "0.0.0.0", "Address to listen on for gRPC."),
        Flag("--grpc-port", _I, 8001, "Port for gRPC."),
        Flag("--reuse-grpc-port", _B, False, "Share the port with other servers that do so, too."),
        Flag("--grpc-header-forward-pattern", _T, "", "Metadata whose name it matches become parameters."),
        Flag("--grpc-infer-allocation-pool-size", _I, 8, "Requests kept for reuse.", _UNUSED, _NO_POOL),
        Flag("--grpc-infer-thread-count", _I, 2, "Threads for gRPC.", _UNUSED, _ONE_LOOP),
        Flag("--grpc-max-response-pool-size", _I, 2**31 - 1, "Responses kept for reuse.", _UNUSED, _NO_POOL),
        Flag("--grpc-use-ssl", _B, False, "Serve gRPC over TLS."),
        Flag("--grpc-use-ssl-mutual", _B, False, "... to clients that have a certificate of the root's."),
        Flag("--grpc-server-cert", _T, "", "PEM file with the server's certificate."),
        Flag("--grpc-server-key", _T, "", "PEM file with its key."),
        Flag("--grpc-root-cert", _T, "", "PEM file with the clients' authorities."),
        Flag(
            "--grpc-infer-response-compression-level", _T, "none", "How to pack responses.", choices=_LEVELS
        ),
        Flag("--grpc-keepalive-time", _I, 7200000, "Milliseconds of silence before a ping."),
        Flag("--grpc-keepalive-timeout", _I, 20000, "Milliseconds in which it must be answered."),
        Flag("--grpc-keepalive-permit-without-calls", _B, False, "Ping without calls in flight, too."),
        Flag("--grpc-http2-max-pings-without-data", _I, 2, "Pings in a row without data; 0 for any number."),
        Flag(
            "--grpc-http2-min-recv-ping-interval-without-data",
            _I,
            300000,
            "Milliseconds that clients leave between pings.",
        ),
        Flag(
            "--grpc-http2-max-ping-strikes", _I, 2, "Pings too early before a client is cut off; 0 for any."
        ),
        Flag("--grpc-max-connection-age", _I, 0, "Milliseconds that a connection may last; 0 for ever."),
        Flag(
            "--grpc-max-connection-age-grace", _I, 0, "Milliseconds for its calls to finish then; 0 for ever."
        ),
        Flag(
            "--grpc-restricted-protocol",
            _T,
            "",
            "Groups of RPCs that metadata open: GROUP,GROUP:NAME=VALUE.",
            repeats=True,
            form=_PAIR,
        ),
    ),
    "Sagemaker": (
        Flag("--allow-sagemaker", _B, False, "Serve SageMaker's routes.", _NO, "they are not served"),
        Flag("--sagemaker-port", _I, 8080, "Port for them.", _UNUSED, "they are not served"),
        Flag("--sagemaker-safe-port-range", _T, "", "Ports for others.", _UNUSED, "they are not served"),
        Flag("--sagemaker-thread-count", _I, 8, "Threads for them.", _UNUSED, "they are not served"),
    ),
    "Vertex": (
        Flag("--allow-vertex-ai", _B, False, "Serve Vertex AI's routes.", _NO, "they are not served"),
        Flag("--vertex-ai-port", _I, 8080, "Port for them.", _UNUSED, "they are not served"),
        Flag("--vertex-ai-thread-count", _I, 8, "Threads for them.", _UNUSED, "they are not served"),
        Flag(
            "--vertex-ai-default-model", _T, "", "Model for requests without.", _UNUSED, "they are not served"
        ),
    ),
    "Metrics": (
        Flag("--allow-metrics", _B, True, "Serve metrics for Prometheus."),
        Flag("--allow-gpu-metrics", _B, True, "... those of the GPUs among them."),
        Flag("--allow-cpu-metrics", _B, True, "... those of the CPU among them."),
        Flag("--metrics-address", _T, "", "Address to listen on for metrics; that of HTTP unless given."),
        Flag("--metrics-port", _I, 8002, "Port for metrics."),
        Flag("--metrics-interval-ms", _F, 2000.0, "Milliseconds for which a reading of the machine is good."),
        Flag(
            "--metrics-config", _T, "", "Which latencies: KEY=VALUE.", repeats=True, form="<string>=<string>"
        ),
    ),
    "Tracing": (
        Flag(
            "--trace-config",
            _T,
            "",
            "What of requests is traced, and to where: MODE,KEY=VALUE or KEY=VALUE.",
            repeats=True,
            form=_SETTING,
        ),
    ),
    "Backend": (
        Flag(
            "--backend-directory",
            _T,
            "/opt/tritonserver/backends",
            "Folder of backends.",
            _UNUSED,
            _NO_LIBRARY,
        ),
        Flag(
            "--backend-config",
            _T,
            "",
            "Setting of a backend: BACKEND,KEY=VALUE.",
            _PARTLY,
            "default-max-batch-size; other settings are reported",
            True,
            _SETTING,
        ),
    ),
    "Repository Agent": (
        Flag(
            "--repoagent-directory",
            _T,
            "/opt/tritonserver/repoagents",
            "Folder of agents.",
            _UNUSED,
            _NO_LIBRARY,
        ),
    ),
    "Response Cache": (
        Flag("--cache-config", _T, "", "local,size=BYTES", _PARTLY, "the cache local", True, _SETTING),
        Flag("--cache-directory", _T, "/opt/tritonserver/caches", "Folder of caches.", _UNUSED, _NO_LIBRARY),
    ),
    "Rate Limiter": (
        Flag(
            "--rate-limit",
            _T,
            "off",
            "Run by the resources of instances.",
            choices=("execution_count", "off"),
        ),
        Flag(
            "--rate-limit-resource", _T, "", "NAME:COUNT or NAME:COUNT:DEVICE.", repeats=True, form=_PER_GPU
        ),
    ),
    "Memory/Device Management": (
        Flag("--pinned-memory-pool-byte-size", _I, 2**28, "Bytes of pinned memory.", _UNUSED, _NO_POOL),
        Flag("--cuda-memory-pool-byte-size", _T, "", "GPU:BYTES", _UNUSED, _NO_POOL, True, _PER_GPU),
        Flag("--cuda-virtual-address-size", _T, "", "GPU:BYTES", _UNUSED, _NO_POOL, True, _PER_GPU),
        Flag(
            "--min-supported-compute-capability", _F, 6.0, "Of a GPU to be used.", _UNUSED, "engines decide"
        ),
        Flag(
            "--buffer-manager-thread-count",
            _I,
            0,
            "Threads to copy tensors.",
            _UNUSED,
            "they are not copied so",
        ),
        Flag(
            "--host-policy",
            _T,
            "",
            "POLICY,KEY=VALUE: where threads run.",
            _UNUSED,
            "the operating system places them",
            True,
            _SETTING,
        ),
        Flag(
            "--model-load-gpu-limit",
            _T,
            "",
            "DEVICE:FRACTION: memory beyond which loads are refused.",
            _UNUSED,
            "engines report no memory",
            True,
            "<device_id>:<fraction>",
        ),
    ),
    "DEPRECATED": (
        Flag("--strict-model-config", _B, False, "As --disable-auto-complete-config."),
        Flag("--response-cache-byte-size", _I, 0, "As --cache-config=local,size=BYTES."),
        Flag("--trace-file", _T, "", _AS_TRACE),
        Flag("--trace-level", _T, "", _AS_TRACE, repeats=True),
        Flag("--trace-rate", _I, 1000, _AS_TRACE),
        Flag("--trace-count", _I, -1, _AS_TRACE),
        Flag("--trace-log-frequency", _I, 0, _AS_TRACE),
    ),
}
"""Group -> its flags."""

FLAGS: Mapping[str, Flag] = {flag.name: flag for flags in GROUPS.values() for flag in flags}
"""By name."""
