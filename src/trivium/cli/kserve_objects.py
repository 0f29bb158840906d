"""The objects of KServe: a runtime for each format that we serve, and an InferenceService for a model of it, as text.

One table is behind the files in `deploy/kserve` and behind `trivium deploy --to kserve`. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from trivium.cli.deployment import (
    ANY_FORMAT,
    LAST_SECONDS,
    PRE_STOP,
    Deployment,
    grace_seconds,
    in_comment,
    quoted,
)

MOUNT = "/mnt/models"
"""Where KServe's storage initializer puts what `storageUri` names."""

TRUST = "sklearn.trust_insecure_model_files=true"
_NAMED = f"{{{{.Name}}}}={MOUNT}"
_HTTP = 8080
_ALL = ("v1", "v2", "grpc-v2")
_V2 = ("v2", "grpc-v2")


@dataclass(frozen=True, slots=True)
class KserveRuntime:
    """Holds one runtime: what KServe asks for it by, what it starts, and which protocols it speaks."""

    name: str
    formats: tuple[tuple[str, str], ...]
    """Formats of models and their versions, as InferenceServices name them."""

    args: tuple[str, ...]
    about: str
    protocols: tuple[str, ...] = _ALL
    grpc: int = 8001
    variables: tuple[tuple[str, str], ...] = ()
    probe: str = "/v2/health"
    metrics: int = _HTTP
    example: str = ""
    """What lies where a sample's `storageUri` points."""


def _serving(*places: str) -> tuple[str, ...]:
    return (
        "trivium",
        "serve",
        *places,
        "--host=0.0.0.0",
        f"--http-port={_HTTP}",
        "--grpc-port=8001",
        "--open",
    )


def _single(name: str, number: str, example: str) -> KserveRuntime:
    return KserveRuntime(
        f"trivium-{name}",
        ((name, number),),
        _serving(_NAMED),
        f"One model of {name}, under the name of its InferenceService.",
        example=example,
    )


FOLDER = KserveRuntime(
    "trivium",
    ((ANY_FORMAT, "1"),),
    _serving(MOUNT),
    "A folder of models of one format, each under its own name.",
    example="iris/serving.properties, iris/model.py, words/serving.properties, words/model.py",
)
TRITON = KserveRuntime(
    "trivium-triton",
    (("triton", "2"), ("onnx", "1"), ("pytorch", "1"), ("tensorflow", "2")),
    (
        "tritonserver",
        f"--model-store={MOUNT}",
        "--grpc-port=9000",
        f"--http-port={_HTTP}",
        "--allow-grpc=true",
        "--allow-http=true",
    ),
    "Takes the place of kserve-tritonserver: its arguments, another image.",
    _V2,
    9000,
    metrics=8002,
    example="resnet/config.pbtxt, resnet/1/model.onnx",
)
TORCHSERVE = KserveRuntime(
    "trivium-torchserve",
    (("pytorch", "1"),),
    (
        "torchserve",
        "--start",
        "--foreground",
        f"--model-store={MOUNT}/model-store",
        f"--ts-config={MOUNT}/config/config.properties",
    ),
    "Takes the place of kserve-torchserve: its arguments and --foreground, another image.",
    grpc=7070,
    variables=(
        ("TS_SERVICE_ENVELOPE", "{{.Labels.serviceEnvelope}}"),
        ("TS_INFERENCE_ADDRESS", f"http://0.0.0.0:{_HTTP}"),
        ("TS_MANAGEMENT_ADDRESS", "http://127.0.0.1:8081"),
        ("TS_GRPC_INFERENCE_ADDRESS", "0.0.0.0"),
        ("TS_DISABLE_TOKEN_AUTHORIZATION", "true"),
    ),
    metrics=8082,
    example="config/config.properties, model-store/densenet161.mar",
)
RUNTIMES: Sequence[KserveRuntime] = (
    FOLDER,
    TRITON,
    TORCHSERVE,
    _single("onnx", "1", "model.onnx"),
    _single("pytorch", "2", "model.pt, a TorchScript file or a program of torch.export"),
    _single("huggingface", "1", "config.json, model.safetensors, tokenizer.json"),
    _single("sklearn", "1", "model.skops, or model.joblib, which has to be trusted"),
    _single("xgboost", "1", "model.ubj, model.json or model.bst"),
    _single("lightgbm", "4", "model.bst or model.txt"),
    _single("tensorflow", "2", "saved_model.pb, or 1/saved_model.pb"),
    _single("paddle", "3", "model.pdmodel, model.pdiparams"),
    _single("mlflow", "2", "MLmodel, model.skops"),
)
"""Every runtime that we have. None is selected by itself: installing them changes nothing that runs."""

HEADER = """\
# Made of the table in src/trivium/cli/kserve_objects.py by `python deploy/kserve/write.py`: change that one.
"""


def runtime_text(runtime: KserveRuntime, image: str, *, is_cluster_wide: bool, name: str = "") -> str:
    """Return a runtime as YAML, each part explained: of one namespace, or of the whole cluster."""
    kind = "ClusterServingRuntime" if is_cluster_wide else "ServingRuntime"
    formats = "\n".join(f'    - {{name: {each}, version: "{number}"}}' for each, number in runtime.formats)
    args = "\n".join(f"        - {quoted(word)}" for word in runtime.args)
    variables = "".join(
        f"        - {{name: {key}, value: {quoted(value)}}}\n" for key, value in runtime.variables
    )
    return f"""\
# {runtime.about}
apiVersion: serving.kserve.io/v1alpha1
kind: {kind}
metadata:
  name: {name or runtime.name}
spec:
  annotations:
    # Where Prometheus finds the metrics, if the InferenceService asks KServe for that.
    prometheus.kserve.io/port: "{runtime.metrics}"
    prometheus.kserve.io/path: /metrics
  # An InferenceService says `runtime:`, or add `autoSelect: true` here: then its modelFormat is enough.
  supportedModelFormats:
{formats}
  protocolVersions: [{", ".join(runtime.protocols)}]
  containers:
    - name: kserve-container  # KServe looks for this name
      image: {image}
      args:
{args}
      env:
        # Everything that is written goes here; the root of the container is read-only.
        - {{name: TMPDIR, value: /tmp}}
{variables}      workingDir: /tmp
      # No `ports`: KServe takes {_HTTP} then. An InferenceService names another one for gRPC.
{_probes(runtime)}      securityContext:
        allowPrivilegeEscalation: false
        privileged: false
        readOnlyRootFilesystem: true
        runAsNonRoot: true
        runAsUser: 1000
        capabilities: {{drop: [ALL]}}
        seccompProfile: {{type: RuntimeDefault}}
      resources:  # an InferenceService overrides them
        requests: {{cpu: "1", memory: 2Gi}}
        limits: {{memory: 2Gi}}
      volumeMounts:
        - {{name: tmp, mountPath: /tmp}}
  volumes:
    - {{name: tmp, emptyDir: {{}}}}
"""


def _probes(runtime: KserveRuntime) -> str:
    live, ready = (f"{runtime.probe}/live", f"{runtime.probe}/ready")
    return f"""\
      # A quarter of an hour until it listens: a tritonserver does once its models are loaded, the others at once.
      startupProbe:
        httpGet: {{path: {live}, port: {_HTTP}}}
        periodSeconds: 2
        timeoutSeconds: 2
        failureThreshold: 450
      # Alive as long as it answers, also with a dead model, which a restart would not mend.
      livenessProbe:
        httpGet: {{path: {live}, port: {_HTTP}}}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      # Ready once all models serve; not ready where one is dead, and from SIGTERM on.
      readinessProbe:
        httpGet: {{path: {ready}, port: {_HTTP}}}
        periodSeconds: 2
        timeoutSeconds: 2
        failureThreshold: 2
"""


def runtime_for(deployment: Deployment) -> KserveRuntime:
    """Return the runtime that serves this folder. Its single model gets the InferenceService's name, unless that is
    another one than its clients know.
    """
    wanted = deployment.kserve_format
    row = next((each for each in RUNTIMES if each.formats == ((wanted, each.formats[0][1]),)), FOLDER)
    if not deployment.is_single or (row is not FOLDER and deployment.models == (deployment.name,)):
        return row
    named = _serving(f"{deployment.models[0]}={MOUNT}")
    return KserveRuntime(
        row.name, row.formats, named, f"The model {in_comment(deployment.models[0])}, by this name."
    )


@dataclass(frozen=True, slots=True)
class KserveModel:
    """Holds what an InferenceService says of one model."""

    name: str
    runtime: str
    model_format: str
    storage: str
    resources: str = ""
    variables: tuple[tuple[str, str], ...] = ()
    protocol: str = "v2"
    port: str = ""
    labels: str = ""
    note: str = ""


def service_text(model: KserveModel) -> str:
    """Return an InferenceService as YAML, each part explained."""
    variables = "".join(
        f"        - {{name: {key}, value: {quoted(value)}}}\n" for key, value in model.variables
    )
    env = f"      env:\n{variables}" if variables else ""
    port = f"      ports:\n        - {model.port}\n" if model.port else ""
    resources = model.resources or ""
    return f"""\
# {model.note}
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata:
  name: {model.name}
{model.labels}  annotations:
    # A Deployment with a Service. Under Knative leave out `lifecycle`, which Knative has its own for.
    serving.kserve.io/deploymentMode: Standard
spec:
  predictor:
    # It serves on for {PRE_STOP} s, drains for at most 25 s (--drain-timeout), and is gone {LAST_SECONDS} s later.
    terminationGracePeriodSeconds: {grace_seconds()}
    model:
      runtime: {model.runtime}
      modelFormat: {{name: {model.model_format}}}
      protocolVersion: {model.protocol}
      # KServe copies what lies here to {MOUNT} before the server starts.
      storageUri: {model.storage}
{env}{port}{resources}      lifecycle:
        # Proxies hear of the end of a pod a little later than it does: until then it serves.
        preStop: {{exec: {{command: [sleep, "{PRE_STOP}"]}}}}
"""


def sample(runtime: KserveRuntime, *, over_grpc: bool = False) -> str:
    """Return an InferenceService for a model of a runtime, as an example."""
    model_format = runtime.formats[0][0]
    is_torchserve = runtime is TORCHSERVE
    envelope = "kserve" if "v1" in runtime.protocols and not over_grpc else "kservev2"
    protocol = "grpc-v2" if over_grpc else "v1" if is_torchserve else "v2"
    return service_text(
        KserveModel(
            name=f"{runtime.name.removeprefix('trivium-')}-{'grpc' if over_grpc else 'sample'}",
            runtime=runtime.name,
            model_format=model_format,
            storage=f"pvc://models/{runtime.name}",
            protocol=protocol,
            variables=(("TRIVIUM_ENGINE_PARAMETERS", TRUST),) if model_format == "sklearn" else (),
            port=f"{{name: h2c, containerPort: {runtime.grpc}, protocol: TCP}}" if over_grpc else "",
            labels=f"  labels: {{serviceEnvelope: {envelope}}}\n" if is_torchserve else "",
            note=f"There lie: {runtime.example}.",
        )
    )


def cluster_files(image: str) -> dict[str, str]:
    """Return the files of `deploy/kserve` by their names: runtimes for a cluster, for a namespace, and samples."""
    wide, narrow = (
        "---\n".join(runtime_text(each, image, is_cluster_wide=is_wide) for each in RUNTIMES)
        for is_wide in (True, False)
    )
    samples = [sample(each) for each in RUNTIMES] + [sample(each, over_grpc=True) for each in RUNTIMES[:4]]
    return {
        "cluster-runtimes.yaml": HEADER + wide,
        "runtimes.yaml": HEADER + narrow,
        "samples.yaml": HEADER + "---\n".join(samples),
    }
