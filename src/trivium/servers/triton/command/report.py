"""Says what `tritonserver` does: warnings, four tables at its start, a line for each change of a model, its end.

Gathers; how tables are drawn says `tables`, what was asked for `settings`. Source: spec sheet `triton`, sections 1.2
and 2.5.
"""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from trivium.app import Site
from trivium.commands.life import StartReport, StopReport
from trivium.commands.server_line import ServerLine, error, warning
from trivium.servers.triton.command.log_lines import TABLE
from trivium.servers.triton.command.settings import CommandSettings
from trivium.servers.triton.command.tables import (
    agents_table,
    backends_table,
    models_table,
    options_table,
    with_code,
)
from trivium.servers.triton.words.backends import BACKENDS
from trivium.types.operations import Listing, VersionStatus
from trivium.types.spec import ModelSpec
from trivium.types.state import VersionState
from trivium.wires.v2.abilities import make_options

_BACKENDS = {backend.engine_name: backend.name for backend in BACKENDS}
_MODES = {"none": "MODE_NONE", "poll": "MODE_POLL", "explicit": "MODE_EXPLICIT"}
_RATES = {"off": "OFF", "execution_count": "EXEC_COUNT"}


def loaded(settings: CommandSettings, report: StartReport) -> Iterator[ServerLine]:
    """Say what serves, and what does not."""
    for text in tables(report.specs, report.listing, settings):
        yield ServerLine(text.rstrip("\n"), extra=TABLE)
    if report.failed and not settings.values["--exit-on-error"]:
        yield error("Internal: failed to load all models")


def narrate(status: VersionStatus) -> Iterator[ServerLine]:
    """Say what a change of state is worth, in the original's words."""
    model, version = status.model, status.version
    match status.state:
        case VersionState.LOADING if version:
            yield ServerLine(f"loading: {model}:{version}")
        case VersionState.READY:
            yield ServerLine(f"successfully loaded '{model}'")
        case VersionState.FAILED if version:
            yield error(f"failed to load '{model}' version {version}: {with_code(status.reason)}")
            yield ServerLine(f"failed to load '{model}'")
        case VersionState.FAILED:
            yield error(f"Poll failed for model directory '{model}': {status.reason}")
        case VersionState.UNLOADED if version:
            yield ServerLine(f"successfully unloaded '{model}' version {version}")
        case _:
            pass


def drained(report: StopReport) -> Iterator[ServerLine]:
    """Say whether every request was answered, and what is to be unloaded."""
    if report.unfinished:
        yield error("failed to stop server: Internal - Exit timeout expired. Exiting immediately.")
    yield ServerLine("All models are stopped, unloading models")
    yield from stopped(report)


def stopped(report: StopReport) -> Iterator[ServerLine]:
    """Say what is loaded still."""
    yield ServerLine(
        f"Timeout {int(report.left)}: Found {report.live} live models and 0 in-flight non-inference requests"
    )


def tables(specs: Sequence[ModelSpec], listing: Listing, settings: CommandSettings) -> tuple[str, ...]:
    """Repository agents, backends, models, options: in the original's order."""
    engines = {spec.engine for spec in specs} & settings.catalogue.engines.keys()  # ensembles have none
    paths = {
        _BACKENDS.get(name, name): inspect.getfile(type(settings.catalogue.engines[name])) for name in engines
    }
    return (
        agents_table(),
        backends_table(paths, _backend_settings(settings)),
        models_table(listing.versions),
        used_options(settings),
    )


def used_options(settings: CommandSettings) -> str:
    """Return the table of the options that the server was given."""
    return options_table(_options(settings))


def options_line(settings: CommandSettings) -> ServerLine:
    """Return them as the line of a server that does not start."""
    return ServerLine("\n" + used_options(settings).rstrip("\n"), extra=TABLE)


def warnings(settings: CommandSettings) -> Iterator[ServerLine]:
    """Say what is wider than our own defaults, which flags have no effect, and what the environment is noticed for."""
    return map(warning, _warnings(settings))


def _warnings(settings: CommandSettings) -> Iterator[str]:
    config = settings.config
    if config.security.keys:
        yield f"The variable TRIVIUM_KEYS is set: clients need a key of {config.security.keys}."
    else:
        yield _as_open(settings)
    if settings.unused:
        yield f"These flags have no effect here: {'; '.join(settings.unused)}"
    yield from settings.notices


def _as_open(settings: CommandSettings) -> str:
    config = settings.config
    wide = [] if config.is_loopback else ["listens without keys to whoever reaches this machine"]
    if settings.control == "explicit" and "model-repository" not in config.security.restricted_apis:
        wide.append("lets every client load and unload models")
    if config.security.client_shared_memory:
        wide.append("lets every client register shared memory of this machine")
    wide.append(f"lets every client change what is logged{' and traced' if config.tracing.has_place else ''}")
    return f"As the original, and wider than trivium serve, this server {', '.join(wide)}."


def _backend_settings(settings: CommandSettings) -> Mapping[str, str]:
    values = settings.values
    return {
        "auto-complete-config": str(not settings.config.models.no_completion).lower(),
        "backend-directory": values["--backend-directory"],
        "min-compute-capability": f"{values['--min-supported-compute-capability']:f}",
        "default-max-batch-size": str(settings.config.models.default_rows),
    }


def _options(settings: CommandSettings) -> Iterator[tuple[str, str]]:
    values, config = settings.values, settings.config
    context = Site(settings.catalogue, config).context
    yield "server_id", context.server_name
    yield "server_version", context.server_version
    extensions = make_options(replace(context, as_original=True)).extensions
    yield "server_extensions", " ".join(extensions)
    for i, path in enumerate(settings.repositories):
        yield f"model_repository_path[{i}]", path
    yield "model_control_mode", _MODES[settings.control]
    for i, model in enumerate(values["--load-model"]):
        yield f"startup_models_{i}", model
    yield "strict_model_config", str(int(config.models.no_completion))
    yield "model_config_name", values["--model-config-name"]
    yield "rate_limit", _RATES[values["--rate-limit"]]
    yield "pinned_memory_pool_byte_size", str(values["--pinned-memory-pool-byte-size"])
    for pool in values["--cuda-memory-pool-byte-size"]:
        gpu, _, size = pool.partition(":")
        yield f"cuda_memory_pool_byte_size{{{gpu}}}", size
    yield "min_supported_compute_capability", f"{values['--min-supported-compute-capability']:.1f}"
    yield "strict_readiness", str(int(values["--strict-readiness"]))
    yield "exit_timeout", str(values["--exit-timeout-secs"])
    yield "cache_enabled", str(int(config.models.cache_bytes > 0))
