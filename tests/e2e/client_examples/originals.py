"""NVIDIA's client examples themselves, unchanged, against this server: run by hand, since no package carries them.

    python -m tests.e2e.client_examples.originals CLIENT PYTHON_BACKEND

takes checkouts of github.com/triton-inference-server/client and of .../python_backend, prints a line for each run and
ends with 1 if one failed. The image examples need Pillow, and over HTTP attrdict; those of shared memory setuptools
below 81. Decides which programs are run with which flags; what they claim they check by themselves.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.client_examples import models
from tests.harness.server_process import SECONDS
from tests.harness.tritonserver import TritonServer, tritonserver

HTTP, GRPC = ("-u", "{http}"), ("-u", "{grpc}")
DYNA = ((), ("-d",))
PICTURES = ("-m", "inception_graphdef", "-c", "2", "-s", "INCEPTION", "-b", "2")
BOTH = (("-i", "HTTP", *HTTP), ("-i", "gRPC", *GRPC))
COMPRESSED = "--request-compression-algorithm", "--response-compression-algorithm"
HTTP_COMPRESSED = tuple((COMPRESSED[0], coding, COMPRESSED[1], coding) for coding in ("gzip", "deflate"))

PROGRAMS: dict[str, tuple[tuple[str, ...], ...]] = {
    "simple_http_health_metadata": (HTTP,),
    "simple_grpc_health_metadata": (GRPC,),
    "simple_http_infer_client": (HTTP, *((*HTTP, *more) for more in HTTP_COMPRESSED)),
    "simple_grpc_infer_client": (GRPC, (*GRPC, "-C", "gzip"), (*GRPC, "-C", "deflate")),
    "simple_http_async_infer_client": (HTTP,),
    "simple_grpc_async_infer_client": (GRPC,),
    "simple_http_aio_infer_client": (HTTP,),
    "simple_grpc_aio_infer_client": (GRPC,),
    "simple_http_string_infer_client": (HTTP,),
    "simple_grpc_string_infer_client": (GRPC,),
    "simple_http_sequence_sync_infer_client": tuple((*HTTP, *more) for more in DYNA),
    "simple_grpc_sequence_sync_infer_client": tuple((*GRPC, *more) for more in DYNA),
    "simple_grpc_sequence_stream_infer_client": tuple((*GRPC, "-o", "50", *more) for more in DYNA),
    "simple_grpc_aio_sequence_stream_infer_client": tuple((*GRPC, "-o", "90", *more) for more in DYNA),
    "simple_http_shm_client": (HTTP,),
    "simple_grpc_shm_client": (GRPC,),
    "simple_http_shm_string_client": (HTTP,),
    "simple_grpc_shm_string_client": (GRPC,),
    "reuse_infer_objects_client": BOTH,
    "simple_grpc_custom_repeat": (GRPC,),
    "simple_grpc_custom_args_client": (GRPC,),
    "simple_grpc_keepalive_client": (GRPC,),
    "grpc_explicit_int_content_client": (GRPC,),
    "grpc_explicit_int8_content_client": (GRPC,),
    "grpc_explicit_byte_content_client": (GRPC,),
    "grpc_client": (GRPC,),
    "image_client": (
        *((*PICTURES, *wire, *more, "{pictures}") for wire in BOTH for more in ((), ("-a",))),
        (*PICTURES, *BOTH[1], "--streaming", "{pictures}"),
        ("-m", "densenet_onnx", "-c", "2", *BOTH[1], "{pictures}"),
    ),
    "grpc_image_client": tuple(
        ("-m", "inception_graphdef", "-c", "2", "-s", "NONE", *GRPC, *more, "{pictures}")
        for more in ((), ("--streaming",))
    ),
    "ensemble_image_client": tuple(("-c", "2", *wire, "{pictures}") for wire in BOTH),
}
"""By program of src/python/examples: the flags of each of its runs. All against one server."""

CONTROL = {"simple_http_model_control": HTTP, "simple_grpc_model_control": GRPC}
"""Each against a server of its own in the mode explicit, since they count the models."""

OF_BACKEND = {
    "add_sub": ("add_sub/model.py", "add_sub/config.pbtxt"),
    "pytorch": ("pytorch/model.py", "pytorch/config.pbtxt"),
    "bls_sync": ("bls/sync_model.py", "bls/sync_config.pbtxt"),
    "bls_async": ("bls/async_model.py", "bls/async_config.pbtxt"),
    "nobatch_auto_complete": ("auto_complete/nobatch_model.py", ""),
    "batch_auto_complete": ("auto_complete/batch_model.py", ""),
    "bls_decoupled_sync": ("bls_decoupled/sync_model.py", "bls_decoupled/sync_config.pbtxt"),
    "bls_decoupled_async": ("bls_decoupled/async_model.py", "bls_decoupled/async_config.pbtxt"),
    "square_int32": ("decoupled/square_model.py", "decoupled/square_config.pbtxt"),
    "repeat_int32": ("decoupled/repeat_model.py", "decoupled/repeat_config.pbtxt"),
    "custom_metrics": ("custom_metrics/model.py", "custom_metrics/config.pbtxt"),
}
"""Model of the Python backend's examples -> its files there. Some of their clients know the usual ports alone."""

BACKEND_CLIENTS = (
    *("add_sub/client", "pytorch/client", "bls/sync_client", "bls/async_client", "auto_complete/client"),
    *("bls_decoupled/sync_client", "bls_decoupled/async_client", "decoupled/repeat_client"),
    *("decoupled/square_client", "custom_metrics/client"),
)
USUAL_PORTS = ("--http-port=8000", "--grpc-port=8001", "--metrics-port=8002")


def main(client: Path, backend: Path) -> int:
    """Run all; the exit status."""
    with tempfile.TemporaryDirectory() as folder:
        results = list(runs(client / "src" / "python" / "examples", backend / "examples", Path(folder)))
    for name, flags, fault in results:
        print("FAILED" if fault else "passed", name, *flags, fault.replace("\n", " | ")[-300:])
    failed = sum(bool(fault) for _, _, fault in results)
    print(f"{len(results)} runs, {failed} failed")
    return int(failed > 0)


def runs(examples: Path, backend: Path, folder: Path) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Each run: program, flags, and what went wrong or nothing."""
    pictures = folder / "pictures"
    pictures.mkdir()
    for name, colour in (("red", (250, 10, 20)), ("green", (5, 200, 30))):
        (pictures / f"{name}.ppm").write_bytes(b"P6\n32 32\n255\n" + bytes(colour) * 32 * 32)
    repository = models.write_repository(folder / "all")
    with tritonserver(folder / "log", "--model-repository", repository, "--allow-client-shm=true") as server:
        for name, sets in PROGRAMS.items():
            for flags in sets:
                yield name, flags, run(examples / f"{name}.py", flags, server, pictures)
    for name, flags in CONTROL.items():
        names = models.SEVEN if "http" in name else (*models.SEVEN, "repeat_int32")
        repository = models.write_repository(folder / name, names)
        words = ("--model-repository", repository, "--model-control-mode=explicit")
        with tritonserver(folder / "log", *words) as server:
            yield name, flags, run(examples / f"{name}.py", flags, server, pictures)
    with tritonserver(
        folder / "log", "--model-repository", of_backend(backend, folder), *USUAL_PORTS, models_raise=True
    ) as server:
        for name in BACKEND_CLIENTS:
            yield name, (), run(backend / f"{name}.py", (), server, pictures)


def of_backend(backend: Path, folder: Path) -> Path:
    """The models of the Python backend's examples, as their pages say to lay them out."""
    root = folder / "backend"
    for name, (handler, config) in OF_BACKEND.items():
        (root / name / "1").mkdir(parents=True)
        (root / name / "1" / "model.py").write_bytes((backend / handler).read_bytes())
        if config:
            (root / name / "config.pbtxt").write_bytes((backend / config).read_bytes())
    return root


def run(program: Path, flags: tuple[str, ...], server: TritonServer, pictures: Path) -> str:
    """What it printed if it failed."""
    places = {"http": server.address("http"), "grpc": server.address("grpc"), "pictures": os.fspath(pictures)}
    command = [sys.executable, program, *(flag.format_map(places) for flag in flags)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=2 * SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return "it did not end"
    # Some say PASS when all is well, and end with 0 in any case.
    is_well = done.returncode == 0 and ("PASS" in done.stdout or "PASS" not in program.read_text())
    return "" if is_well else f"status {done.returncode}: {done.stdout}{done.stderr}"


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
