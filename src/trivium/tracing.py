"""Traces as they are configured: what is traced from the start, and where traces go.

Decides nothing about a request. Files and collectors are the exporters' business.
"""

from trivium.config.options import ServerConfig
from trivium.exporters.otlp import NAMES, Collector, Spans
from trivium.exporters.trace_files import TraceFiles, TraceText
from trivium.server_record import ServerRecord
from trivium.types.errors import Code, ServeError
from trivium.types.spoken import spoken
from trivium.types.tracing import Detail, TraceExporter, TraceSettings

LEVELS = {"timestamps": Detail.TIMES, "tensors": Detail.TENSORS}


def exporter(config: ServerConfig, server: ServerRecord, text: TraceText) -> TraceExporter | None:
    """Open the place that traces go to, in a file as `text` writes them; None without a place. INVALID for two places,
    and as the exporters say.
    """
    options = config.tracing
    if options.file and options.endpoint:
        raise ServeError(
            Code.INVALID,
            spoken("Traces go to one place: give --trace-file or --trace-endpoint, not both."),
        )
    if options.file:
        return TraceFiles(options.file, text, follows=server.trace_files_follow)
    if not options.endpoint:
        return None
    resource = _resource(options.resource)
    collector = Collector(options.endpoint, resource, options.queue, options.delay, options.batch)
    return Spans(collector, server.span_names or NAMES)


def settings(config: ServerConfig, server: ServerRecord) -> TraceSettings:
    """Return what is traced from the start. INVALID for a level that there is not, or for one without a place for
    traces, but for servers that may have that.
    """
    words = [word.strip() for word in config.tracing.levels.split(",") if word.strip()]
    for word in words:
        if word not in LEVELS:
            raise ServeError(
                Code.INVALID,
                spoken(
                    f"--trace-levels: there is no level {word[:40]!r}; there are: {', '.join(LEVELS)}. Correct it."
                ),
            )
    if words and not config.tracing.has_place and not server.traces_nowhere:
        raise ServeError(
            Code.INVALID,
            spoken("--trace-levels needs a place for traces. Give --trace-file or --trace-endpoint, too."),
        )
    return TraceSettings(
        frozenset(LEVELS[word] for word in words),
        config.tracing.rate,
        None if config.tracing.count < 0 else config.tracing.count,
        config.tracing.frequency,
    )


def _resource(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in filter(None, map(str.strip, text.split(","))):
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise ServeError(
                Code.INVALID,
                spoken(f"--trace-resource: {pair[:80]!r} is not of the form KEY=VALUE. Correct it."),
            )
        found[key] = value
    return found
