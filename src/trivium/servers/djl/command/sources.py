"""Gathers what configures a DJL server, from a file, the command line and the environment: the later goes before.

What is at fault in them `settings.sources` says. Pure. Source: spec sheet
`djl`, sections 1.1 and 1.2: of file, flags and `SERVING_*` the environment wins.
"""

from collections.abc import Iterator, Mapping, Sequence

from trivium.codecs.java_properties import Properties
from trivium.servers.djl.command.keys import CONFIG
from trivium.servers.djl.words.stray_commas import without_stray_commas
from trivium.settings.judging import meant_by, unknown, without_effect
from trivium.settings.sources import COMMAND_LINE, ENVIRONMENT, Sources
from trivium.types.findings import Finding, Severity
from trivium.types.sources import SourceSetting
from trivium.types.spec import Origin

PREFIX = "SERVING_"
_MEBIBYTE = 2**20
_OF_CONTAINERS = frozenset(
    {
        "features",
        "download_dir",
        "retry_threshold",
        "fail_fast",
        "health_check_override",
        "prometheus",
        "min_workers",
        "max_workers",
        "opts",
        "rolling_batch_buffer",
    }
)
"""Variables `SERVING_*` that are no keys of the file: others read them, or nobody here."""

_NOT_SERVED = ("cache_", "memory_cache", "ddb_", "s3_cache")


def gather(
    file: Properties | None, models: Sequence[str], store: str, environment: Mapping[str, str]
) -> Sources:
    """Put file, flags (`models` of -m and -w, the `store` of -s) and environment together, and judge each value."""
    found = Sources(CONFIG)
    if file is not None:
        file = without_stray_commas(file)
        found.findings += file.findings
        found.lay(file.settings())
    found.lay((("model_store", SourceSetting(store, Origin(COMMAND_LINE, "-s"))),))
    found.lay((("load_models", SourceSetting(",".join(models), Origin(COMMAND_LINE, "-m"))),))
    found.lay(_variables(environment, found.findings))
    found.lay(_largest(environment))
    return found


def _variables(
    environment: Mapping[str, str], findings: list[Finding]
) -> Iterator[tuple[str, SourceSetting]]:
    for variable, value in environment.items():
        name = variable.removeprefix(PREFIX).lower()
        if not value or not variable.startswith(PREFIX) or name in _OF_CONTAINERS:
            continue
        origin = Origin(ENVIRONMENT, variable)
        if name.startswith(_NOT_SERVED):
            why = "answers that are fetched later are kept in this server's memory"
            findings.append(without_effect(origin, why))
        elif CONFIG.find(name) is None:
            meant = meant_by(name, CONFIG.rows)
            what = f"{variable} is no key of DJL's, and has no effect"
            near = meant and PREFIX + meant.upper()
            findings.append(unknown(origin, what, "", near, "Remove it.", Severity.NOTICE))
        else:
            yield name, SourceSetting(value, origin)


def _largest(environment: Mapping[str, str]) -> Iterator[tuple[str, SourceSetting]]:
    """Return the largest request as SageMaker says it, in bytes or in mebibytes."""
    for name, factor in (("SAGEMAKER_MAX_PAYLOAD_IN_MB", _MEBIBYTE), ("SAGEMAKER_MAX_REQUEST_SIZE", 1)):
        value = environment.get(name, "").strip()
        if value.isascii() and value.isdigit() and len(value) < 10:
            yield "max_request_size", SourceSetting(str(int(value) * factor), Origin(ENVIRONMENT, name))
