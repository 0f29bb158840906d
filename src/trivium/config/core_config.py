"""Translates the configuration of a server to that of its core.

Decides which value of an option means that something is off. Must not know what is served, or by which protocol.
"""

from importlib.util import find_spec

from trivium.config.engine_parameters import parse_engine_parameters
from trivium.config.options import ServerConfig
from trivium.core.instances.rate_policy import parse_limits
from trivium.core.observability.quantiles import parse_quantiles
from trivium.machine.control_group import usable_processors
from trivium.types.core_config import (
    CoreConfig,
    DeferredLimits,
    ModelControlMode,
    UnreadLimits,
    WorkerBounds,
)
from trivium.types.errors import Code, ServeError
from trivium.types.metrics import Measurements
from trivium.types.spec import Defaults
from trivium.types.spoken import spoken
from trivium.types.text_engines import WORDS as TEXT_ENGINES
from trivium.types.tracing import TraceSettings

_MOST_KEPT = 2**28


def core_config(
    config: ServerConfig, version: str, gpus: int, traces: TraceSettings, reserved_regions: tuple[str, ...]
) -> CoreConfig:
    """Return the core's part of a configuration, without a scratch folder and what its profile decides. INVALID for a
    value that cannot be used.
    """
    models, workers = config.models, config.workers
    return CoreConfig(
        version=version,
        defaults=Defaults(
            config_name=_config_name(models.config_name),
            queue_items=models.queue_items,
            run_deadline=workers.run_timeout or None,
            startup_deadline=workers.startup_timeout,
            gpus=gpus,
            cpus=usable_processors(),
            max_rows=models.default_rows,
            completes=not models.no_completion,
            installs=models.install_packages != "none",
            places=models.fetch_from,
            engine_parameters=parse_engine_parameters(models.engine_parameters),
            text_engine=TEXT_ENGINES[models.text_engine],
            has_vllm=find_spec("vllm") is not None,
        ),
        loads_at_once=models.load_threads,
        load_retries=models.load_retries,
        installs_registered=models.install_packages == "all",
        unique_names=models.unique_names,
        is_lenient=models.ready_despite_failures,
        control=ModelControlMode(models.control),
        poll_seconds=models.poll_seconds,
        follows_files=models.reload,
        cache_bytes=models.cache_bytes,
        resources=None if workers.rate_limit == "off" else parse_limits(workers.rate_limit_resources),
        recycle_items=workers.items or None,
        recycle_bytes=workers.growth or None,
        worker_bytes=workers.memory or None,
        worker_bounds=WorkerBounds(workers.files, workers.processors, workers.offline),
        measures=_measures(config),
        follows_lines=config.server.log_format == "json",
        traces=traces,
        client_shared_memory=config.security.client_shared_memory,
        reserved_regions=reserved_regions,
        watches_loop=True,
        deferred=DeferredLimits(models.deferred_answers, models.deferred_bytes, models.deferred_seconds),
        unread=UnreadLimits(models.unread_memory, models.unread_disk),
        kept_buffer_bytes=min(_MOST_KEPT, config.server.max_buffered_bytes // 4),
    )


def _measures(config: ServerConfig) -> Measurements:
    metrics = config.metrics
    return Measurements(
        parse_quantiles(metrics.quantiles),
        metrics.first_part,
        bool(config.server.access_log),
        metrics.interval,
        not metrics.no_cpu_metrics,
        not metrics.no_gpu_metrics,
    )


def _config_name(name: str) -> str:
    if "/" in name or name.startswith(".") or any(map(str.isspace, name)):
        raise ServeError(
            Code.INVALID,
            spoken(
                f"--model-config-name {name!r} is no name of a file without its ending. Give one like 'fast', which "
                "stands for configs/fast.pbtxt in a model's folder."
            ),
        )
    return name
