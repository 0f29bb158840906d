"""The files that `trivium deploy` writes for each target, by their names: YAML, explained line by line. Pure."""

from collections.abc import Callable, Mapping

from trivium.cli.deployment import LAST_SECONDS, PRE_STOP, Deployment, grace_seconds, in_comment, quoted
from trivium.cli.kserve_objects import KserveModel, runtime_for, runtime_text, service_text
from trivium.config.options import GeneralConfig

_DRAIN = int(GeneralConfig().drain_timeout)


def kserve(deployment: Deployment) -> dict[str, str]:
    """Return a ServingRuntime of one namespace and an InferenceService that uses it."""
    runtime, name = runtime_for(deployment), f"trivium-{deployment.name}"
    resources = f"""\
      resources:
        # {deployment.why_memory}.
        requests: {{cpu: "1", memory: {deployment.memory}}}
        # No limit of processor time: one that is hit shows as latency.
        limits: {{memory: {deployment.memory}{_gpu_limit(deployment)}}}
"""
    parameters = deployment.engine_parameters
    model = KserveModel(
        name=deployment.name,
        runtime=name,
        model_format=runtime.formats[0][0],
        storage=f"pvc://{deployment.name}-models",
        resources=resources,
        variables=(("TRIVIUM_ENGINE_PARAMETERS", parameters),) if parameters else (),
        note=f"Copy what is in {deployment.place} to the volume claim {deployment.name}-models, or name another place: "
        "s3://, gs://, hf://.",
    )
    runtime_yaml = runtime_text(runtime, deployment.image, is_cluster_wide=False, name=name)
    return {"runtime.yaml": runtime_yaml, "inferenceservice.yaml": service_text(model)}


def helm(deployment: Deployment) -> dict[str, str]:
    """Return the values of our chart."""
    repository, _, tag = deployment.image.rpartition(":")
    if not repository or "/" in tag:
        repository, tag = deployment.image, "latest"
    parameters = (
        f"env:\n  - {{name: TRIVIUM_ENGINE_PARAMETERS, value: {quoted(deployment.engine_parameters)}}}\n"
        if deployment.engine_parameters
        else ""
    )
    return {
        "values.yaml": f"""\
# Values of the chart deploy/helm/trivium of Trivium's sources. What is not here has the chart's own value.
# helm upgrade --install {deployment.name} deploy/helm/trivium -f values.yaml
image:
  repository: {repository}
  tag: "{tag}"
# Two, so that one serves while the other is replaced.
replicaCount: 2
models:
  # A volume claim with what is in {deployment.place}: copy that there first. Replicas only read it.
  claim: {deployment.name}-models
  # What is served of it: {in_comment(", ".join(deployment.models))}.
  places: [{quoted(_place(deployment, "/models"))}]
resources:
  # {deployment.why_memory}.
  requests: {{cpu: "1", memory: {deployment.memory}}}
  # No limit of processor time: one that is hit shows as latency.
  limits: {{memory: {deployment.memory}{_gpu_limit(deployment)}}}
{parameters}"""
    }


def compose(deployment: Deployment) -> dict[str, str]:
    """Return a compose file that serves the folder where it lies."""
    is_file = deployment.path.is_file()
    place = f"/models/{deployment.path.name}" if is_file else "/models"
    source = deployment.path.resolve()
    parameters = (
        f"    environment: {{TRIVIUM_ENGINE_PARAMETERS: {_for_compose(deployment.engine_parameters)}}}\n"
        if deployment.engine_parameters
        else ""
    )
    gpus = (
        f"""\
    deploy:
      resources:
        reservations:
          # The models ask for them; the host needs NVIDIA's container toolkit.
          devices: [{{driver: nvidia, count: {deployment.gpus}, capabilities: [gpu]}}]
"""
        if deployment.gpus
        else ""
    )
    return {
        "compose.yaml": f"""\
# docker compose -f compose.yaml up
services:
  trivium:
    image: {deployment.image}
    # Within the container it listens to all; without keys, as --open says. Who reaches it decides `ports`.
    command: [trivium, serve, {_for_compose(_place(deployment, place))}, --host=0.0.0.0, --open]
    ports:
      # This machine alone. HTTP, and gRPC.
      - "127.0.0.1:8080:8080"
      - "127.0.0.1:8001:8001"
    volumes:
      # The models, where they lie; nobody writes to them.
      - type: bind
        source: {_for_compose(str(source))}
        target: {_for_compose(place)}
        read_only: true
{parameters}    # Nothing is written but there.
    read_only: true
    tmpfs: [/tmp]
    cap_drop: [ALL]
    security_opt: ["no-new-privileges:true"]
    # {deployment.why_memory}.
    mem_limit: {deployment.memory.removesuffix("i").lower()}
    # It drains for at most {_DRAIN} s (--drain-timeout), and is gone {LAST_SECONDS} s later.
    stop_grace_period: {_DRAIN + LAST_SECONDS}s
    restart: unless-stopped
{gpus}"""
    }


RAY_DEPLOYMENT = "trivium"
"""What our application on Ray Serve calls its deployment."""


def ray(deployment: Deployment) -> dict[str, str]:
    """Return a RayService whose replicas are whole servers."""
    gpus = f", num_gpus: {deployment.gpus}" if deployment.gpus else ""
    given = deployment.engine_parameters
    parameters = f", engine_parameters: {quoted(given)}" if given else ""
    return {
        "rayservice.yaml": f"""\
# For KubeRay. Copy what is in {deployment.place} to the volume claim {deployment.name}-models first.
apiVersion: ray.io/v1
kind: RayService
metadata:
  name: {deployment.name}
spec:
  # Ray reads this text by itself.
  serveConfigV2: |
    applications:
      - name: {deployment.name}
        route_prefix: /
        # One replica is one whole Trivium, with its batching, streams and health.
        import_path: trivium.ray:app
        # `open`: without keys, whoever reaches the Service is served. With `keys: FILE` those who have one.
        args: {{paths: [{quoted(_ray_mount(deployment))}], open: true{parameters}}}
        deployments:
          - name: {RAY_DEPLOYMENT}
            # What Ray reckons with for a replica; it is no limit.
            ray_actor_options: {{num_cpus: 1{gpus}}}
  rayClusterConfig:
    headGroupSpec:
      # The head serves requests as well; its dashboard stays inside.
      rayStartParams: {{dashboard-host: 127.0.0.1}}
      template:
        spec:
{_ray_pod(deployment, "ray-head")}
    workerGroupSpecs:
      - groupName: servers
        replicas: 1
        minReplicas: 1
        maxReplicas: 4
        rayStartParams: {{}}
        template:
          spec:
            # A worker serves on for {PRE_STOP} s, drains for at most {_DRAIN} s, and is gone {LAST_SECONDS} s later.
            terminationGracePeriodSeconds: {grace_seconds()}
{_indented(_ray_pod(deployment, "ray-worker"), 2)}
"""
    }


def _ray_pod(deployment: Deployment, name: str) -> str:
    return f"""\
          containers:
            - name: {name}
              # An image with the extra `ray` in it.
              image: {deployment.image}
              resources:
                # {deployment.why_memory}, and 2 GiB for Ray's own store.
                requests: {{cpu: "1", memory: {_with_store(deployment.memory)}}}
                limits: {{memory: {_with_store(deployment.memory)}{_gpu_limit(deployment)}}}
              volumeMounts:
                # A single model is named after its folder.
                - {{name: models, mountPath: {quoted(_ray_mount(deployment))}, readOnly: true}}
          volumes:
            - name: models
              persistentVolumeClaim: {{claimName: {deployment.name}-models, readOnly: true}}"""


def _ray_mount(deployment: Deployment) -> str:
    return f"/models/{deployment.models[0]}" if deployment.is_single else "/models"


def _with_store(memory: str) -> str:
    return f"{int(memory.removesuffix('Mi')) + 2048}Mi"


def _indented(text: str, by: int) -> str:
    return "\n".join(" " * by + line for line in text.splitlines())


def _gpu_limit(deployment: Deployment) -> str:
    return f', nvidia.com/gpu: "{deployment.gpus}"' if deployment.gpus else ""


def _place(deployment: Deployment, mounted: str) -> str:
    """Return what is served of a folder: a single model by its name, since the folder has another one there."""
    return f"{deployment.models[0]}={mounted}" if deployment.is_single else mounted


def _for_compose(text: str) -> str:
    """Return a text as Compose reads it: a dollar begins a variable there unless it is doubled."""
    return quoted(text.replace("$", "$$"))


TARGETS: Mapping[str, Callable[[Deployment], dict[str, str]]] = {
    "kserve": kserve,
    "helm": helm,
    "compose": compose,
    "ray": ray,
}
"""What `--to` may say."""
