"""The report of `tritonserver` at its start: the four tables, and where it differs from what the flags ask for.

Gathers; how tables are drawn says `tables`, what was told `settings`.
"""

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import replace

from trivium.app import Site
from trivium.core.server import Server
from trivium.servers.triton.command.settings import CommandSettings
from trivium.servers.triton.command.tables import agents_table, backends_table, models_table, options_table
from trivium.servers.triton.words.backends import BACKENDS
from trivium.types.operations import Listing
from trivium.wires.v2.abilities import make_options

_BACKENDS = {backend.engine_name: backend.name for backend in BACKENDS}
_MODES = {"none": "MODE_NONE", "poll": "MODE_POLL", "explicit": "MODE_EXPLICIT"}
_RATES = {"off": "OFF", "execution_count": "EXEC_COUNT"}


def tables(server: Server, listing: Listing, settings: CommandSettings) -> tuple[str, ...]:
    """Repository agents, backends, models, options: in the original's order."""
    engines = {
        spec.engine for spec in server.specs()
    } & settings.catalogue.engines.keys()  # ensembles have none
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


def warnings(settings: CommandSettings) -> Iterator[str]:
    """Say what is wider than our own defaults, which flags have no effect, and what the environment is noticed for."""
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
