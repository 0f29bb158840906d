"""The lines by which a DJL server tells of its configuration when it starts.

Source: spec sheet `djl`, section 1.5.
"""

import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from trivium.commands.server_line import ServerLine, warning
from trivium.machine.control_group import usable_processors
from trivium.servers.djl.command.settings import ServingSettings

_SHOWN = re.compile(
    r"SERVING|PYTHON|DJL_|HF_|OPTION_|.*SAGEMAKER|(TENSOR|PIPELINE)_PARALLEL_DEGREE|.*OMP_NUM_THREADS|CUDA_VISIBLE_DEVICES"
)
_SECRET = re.compile(r"TOKEN|PASS|SECRET|KEY")


def opening(
    settings: ServingSettings, environment: Mapping[str, str], gpus: int, file: str
) -> list[ServerLine]:
    """Return what is said before anything is loaded."""
    return [
        ServerLine("Starting model server ..."),
        ServerLine(f"Starting djl-serving: trivium {settings.catalogue.version} ..."),
        ServerLine(summary(settings, environment, gpus, file)),
        *map(warning, (*settings.loaded.notices, *settings.notices)),
    ]


def summary(settings: ServingSettings, environment: Mapping[str, str], gpus: int, file: str) -> str:
    """Return the record of many lines that the original writes before it loads."""
    return "\n".join(("", *_lines(settings, gpus, file), "Environment variables:", *_variables(environment)))


def _lines(settings: ServingSettings, gpus: int, file: str) -> Iterator[str]:
    text = settings.sources.text
    yield f"Model server home: {settings.home}"
    yield f"Current directory: {Path.cwd()}"
    yield f"Temp directory: {tempfile.gettempdir()}"
    yield f"Command line: {' '.join(sys.argv[1:])}"
    yield f"Number of CPUs: {usable_processors()}"
    if gpus:
        yield f"Number of GPUs: {gpus}"
    yield f"Config file: {file or 'N/A'}"
    yield f"Inference address: {text('inference_address')}"
    management = (
        "management_address" if settings.sources.is_given("management_address") else "inference_address"
    )
    yield f"Management address: {text(management)}"
    yield f"Default job_queue_size: {text('job_queue_size')}"
    yield f"Default batch_size: {text('batch_size')}"
    yield f"Default max_batch_delay: {text('max_batch_delay')}"
    yield f"Default max_idle_time: {text('max_idle_time')}"
    yield f"Model Store: {text('model_store') or 'N/A'}"
    yield f"Initial Models: {text('load_models') or 'N/A'}"
    yield f"Netty threads: {text('number_of_netty_threads')}"
    yield f"Maximum Request Size: {text('max_request_size')}"


def _variables(environment: Mapping[str, str]) -> Iterator[str]:
    for name, value in sorted(environment.items()):
        if _SHOWN.match(name):
            yield f"    {name}: {'***' if _SECRET.search(name) else value}"
