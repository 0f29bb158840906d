"""Measures the machine of a TorchServe, every so often: by itself, or by the command of `system_metrics_cmd`.

What a command says is read as the original reads it, and bounded. Source: spec sheet `torchserve`, section 6.1.
"""

import asyncio
import contextlib
import logging
import sys
from collections.abc import AsyncIterator, Iterable

from trivium.core.server import Server
from trivium.servers.torchserve.words.machine_metrics import machine_metrics
from trivium.servers.torchserve.words.meter import TorchServeMeter
from trivium.servers.torchserve.words.metric_lines import read_system_metric
from trivium.settings.sources import Sources
from trivium.types.errors import ServeError
from trivium.types.metrics import GpuUse, MachineUse
from trivium.types.operations import CollectMetrics
from trivium.types.statistics import MetricsReport

_MOST_OUTPUT = 2**20
_log = logging.getLogger("org.pytorch.serve.metrics.MetricCollector")


@contextlib.asynccontextmanager
async def measuring(server: Server, meter: TorchServeMeter, sources: Sources) -> AsyncIterator[None]:
    """Measure while the block runs; nothing where that is switched off."""
    if sources.switch("disable_system_metrics"):
        yield
        return
    task = asyncio.ensure_future(_measure(server, meter, sources))
    try:
        yield
    finally:
        task.cancel()


async def _measure(server: Server, meter: TorchServeMeter, sources: Sources) -> None:
    seconds, command = sources.number("metric_time_interval"), sources.text("system_metrics_cmd").split()
    program = [sources.text("python") or sys.executable, *command]
    last = ""
    while True:
        try:
            if command:
                update_by_lines(meter, await _said(program, seconds))
            else:
                part = await server.execute(CollectMetrics())
                assert isinstance(part.answer, MetricsReport), part.answer
                update_machine(meter, part.answer.machine, part.answer.gpus)
            last = ""
        except (OSError, ServeError, ValueError) as error:
            if str(error) != last:  # what fails each time is said once
                _log.error("The machine is not measured: %s", error)
            last = str(error)
        await asyncio.sleep(seconds)


def update_machine(meter: TorchServeMeter, machine: MachineUse | None, gpus: Iterable[GpuUse]) -> None:
    """Update the metrics of the machine and of its GPUs, as far as they are known."""
    for name, values, value in machine_metrics(machine, gpus):
        meter.update(name, values, value)


def update_by_lines(meter: TorchServeMeter, lines: Iterable[str]) -> None:
    """Update metrics by the lines of a command, up to an empty one: what follows is about processes. ValueError for a
    line that is none.
    """
    for line in lines:
        if not line:
            return
        metric = read_system_metric(line)
        if metric is None:
            raise ValueError(f"Parse metrics failed: {line[:200]}")
        meter.update(metric.name, metric.values, metric.value)


async def _said(program: list[str], seconds: float) -> list[str]:
    """Return the lines that a command prints. OSError where it cannot be run, ValueError where it does not end well."""
    process = await asyncio.create_subprocess_exec(
        *program,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(seconds):
            assert process.stdout is not None
            output = b""
            while piece := await process.stdout.read(_MOST_OUTPUT):
                output += piece
                if len(output) > _MOST_OUTPUT:
                    raise ValueError(f"{' '.join(program)} prints more than {_MOST_OUTPUT} bytes.")
            status = await process.wait()
    except TimeoutError as error:
        raise ValueError(f"{' '.join(program)} had not ended after {seconds} s, the interval.") from error
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
    if status:
        raise ValueError(f"{' '.join(program)} ended with status {status}. Correct system_metrics_cmd.")
    return [line.strip() for line in output.decode("utf-8", "replace").splitlines()]
