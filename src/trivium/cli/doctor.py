"""`trivium doctor`: looks for what is wrong with this machine before a server does, and says what to do."""

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click
import msgspec
from rich.console import Console

import trivium
from trivium.cli.layout import labelled
from trivium.codecs.visible_text import visible
from trivium.devices import count_gpus
from trivium.machine import doctor_policy, limits
from trivium.machine.control_group import allowance
from trivium.machine.doctor_policy import Diagnosis, Imported, Library, MachineVerdict
from trivium.machine.extras import install_command
from trivium.machine.gpus import Gpus
from trivium.machine.memory import FreeMemory
from trivium.machine.python_commands import program_text
from trivium.types.errors import said_by
from trivium.types.spec import Device

_SECONDS = 120.0
"""For one import: the largest read gigabytes from a disk that may be slow."""

_ANY_WIDTH = 100_000
_SHOWN = 300
_PORTS = {"HTTP": 8080, "gRPC": 8001}
"""Where `trivium serve` listens by default."""

_IMPORT = (
    "import importlib, importlib.metadata as found\n"
    "module = importlib.import_module({module!r})\n"
    "cuda = getattr(module, 'cuda', None) if {module!r} == 'torch' else None\n"
    "said = '' if cuda is None else 'yes' if cuda.is_available() else 'no'\n"
    "print('imported', getattr(module, '__version__', '') or '-', said)\n"
)

LIBRARIES = (
    Library("numpy", "everything", is_required=True),
    Library("msgspec", "everything", is_required=True),
    Library("uvloop", "the server's loop", is_required=True),
    Library("httptools", "HTTP", is_required=True),
    Library("hpack", "gRPC", is_required=True),
    Library("google.protobuf", "gRPC and Triton's files", is_required=True),
    Library("yaml", "TorchServe's files", is_required=True),
    Library("PIL", "pictures", is_required=True),
    Library("psutil", "metrics", is_required=True),
    Library("pynvml", "GPUs", is_required=True),
    Library("onnxruntime", "ONNX models", is_required=True),
    Library("torch", "TorchScript, handlers with PyTorch, language models", "torch"),
    Library("transformers", "language models", "llm"),
    Library("tokenizers", "texts", "translators"),
    Library("vllm", "language models by vLLM", "vllm"),
    Library("openvino", "OpenVINO's models", "openvino"),
    Library("openvino_genai", "language models by OpenVINO", "openvino-llm"),
    Library("tensorflow", "SavedModels", "tensorflow"),
    Library("paddle", "Paddle's models", "paddle"),
    Library("sklearn", "scikit-learn", "sklearn"),
    Library("xgboost", "XGBoost", "xgboost"),
    Library("lightgbm", "LightGBM", "lightgbm"),
    Library("bitsandbytes", "quantised weights", "quantize"),
    Library("boto3", "models of s3://", "s3"),
    Library("huggingface_hub", "models of the hub", "hub"),
    Library("ray", "beyond one machine", "ray"),
    Library("watchfiles", "--reload at once", "reload"),
    Library("opentelemetry.sdk", "traces over OTLP", "otlp"),
)


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as one JSON array.")
@click.option("--http-port", default=_PORTS["HTTP"], show_default=True, help="Port for HTTP to look at.")
@click.option("--grpc-port", default=_PORTS["gRPC"], show_default=True, help="Port for gRPC to look at.")
@click.option("--seconds", default=_SECONDS, show_default=True, help="Time that one import may take.")
def command(as_json: bool, http_port: int, grpc_port: int, seconds: float) -> None:
    """Look at Python, libraries, engines, GPUs and the limits of this machine, and say what to do about what is wrong.

    Each library is imported in a process of its own. Exit status 1 if something is broken.
    """
    console = Console(highlight=False)
    width = console.width if console.is_terminal else _ANY_WIDTH
    found: list[Diagnosis] = []
    for each in diagnoses({"HTTP": http_port, "gRPC": grpc_port}, seconds):
        found.append(each)
        if not as_json:
            for line in lines_of(each, width):
                click.echo(line)
    broken = sum(each.verdict is MachineVerdict.BROKEN for each in found)
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
    else:
        notes = sum(each.verdict is MachineVerdict.NOTE for each in found)
        click.echo(f"{len(found)} looked at, {broken} broken, {notes} worth a word.")
    if broken:
        raise SystemExit(1)


def lines_of(diagnosis: Diagnosis, width: int) -> Iterator[str]:
    """Yield the lines of one finding: how it is, and below that what to do."""
    mark = {MachineVerdict.GOOD: "ok", MachineVerdict.NOTE: "note", MachineVerdict.BROKEN: "BROKEN"}[
        diagnosis.verdict
    ]
    words = visible(f"{diagnosis.what}: {diagnosis.found}")
    yield from labelled([(f"{mark:6}", words)], width, 0)
    if diagnosis.mend and diagnosis.verdict is not MachineVerdict.GOOD:
        yield from labelled([(" " * 6, visible(diagnosis.mend))], width, 0)


def diagnoses(ports: dict[str, int], seconds: float) -> Iterator[Diagnosis]:
    """Yield what is found, each as soon as it is known, in one order."""
    yield doctor_policy.judge_python(tuple(sys.version_info[:3]), sys.maxsize > 2**32)
    yield doctor_policy.judge_clock(time.time(), Path(str(trivium.__file__)).stat().st_mtime)
    yield doctor_policy.judge_processors(limits.processors(), allowance(), os.environ)
    yield doctor_policy.judge_memory(FreeMemory().read(with_gpus=False).get((Device.CPU, 0)))
    yield doctor_policy.judge_descriptors(*limits.descriptors())
    shared = limits.space(limits.SHARED_MEMORY)
    yield doctor_policy.judge_shared_memory(shared.total if shared else None, shared.free if shared else 0)
    folder, scratch = limits.temporary_space()
    yield doctor_policy.judge_scratch(folder, scratch.free if scratch else None)
    for name, port in ports.items():
        yield doctor_policy.judge_port(name, port, _taken(port))
    yield from _libraries(seconds)


def _libraries(seconds: float) -> Iterator[Diagnosis]:
    """Yield what becomes of each import, two at a time, and then what is known of GPUs."""
    cuda = ""
    with ThreadPoolExecutor(2, "doctor") as threads:
        begun = [
            threads.submit(imported, each.module, seconds) if is_installed(each.module) else None
            for each in LIBRARIES
        ]
        for library, each in zip(LIBRARIES, begun, strict=True):
            result = None if each is None else each.result()
            if library.module == "torch" and result is not None:
                cuda = result.cuda
            yield doctor_policy.judge_library(library, result, install_command(library.extra))
    told = [f"{each.index}: {_memory(each.memory_total)}" for each in Gpus().read()]
    yield doctor_policy.judge_gpus(count_gpus(), told, cuda)


def is_installed(module: str) -> bool:
    """Tell whether a module can be found, without importing it, or what it lies in."""
    first, _, rest = module.partition(".")
    spec = importlib.util.find_spec(first)
    if spec is None or not rest:
        return spec is not None
    places = [Path(place, *rest.split(".")) for place in spec.submodule_search_locations or ()]
    return any(place.is_dir() or place.with_suffix(".py").is_file() for place in places)


def imported(module: str, seconds: float) -> Imported:
    """Import a module in a process of its own, which is killed after so many seconds."""
    try:
        done = subprocess.run(
            program_text(sys.executable, _IMPORT.format(module=module)),
            capture_output=True,
            timeout=seconds,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Imported(is_late=True)
    except OSError as error:
        return Imported(fault=said_by(error))
    if done.returncode < 0:
        return Imported(signal=_signal_name(-done.returncode))
    lines = done.stdout.decode(errors="replace").splitlines()
    told = next((line for line in reversed(lines) if line.startswith("imported ")), None)
    if done.returncode or told is None:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        return Imported(fault=said[-1][:_SHOWN] if said else f"it ended with status {done.returncode}")
    _, version, *cuda = told.split()
    return Imported(version=version.strip("-"), cuda="".join(cuda))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _taken(port: int) -> str:
    """Return why nobody can listen at a port of this machine; empty where somebody can, and for 0 and below."""
    if port <= 0:
        return ""
    with socket.socket() as plug:
        plug.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            plug.bind(("127.0.0.1", port))
        except (OSError, OverflowError) as error:
            return said_by(error).lower()
    return ""


def _memory(total: int | None) -> str:
    return "a GPU" if total is None else f"a GPU of {doctor_policy.size(total)}"
