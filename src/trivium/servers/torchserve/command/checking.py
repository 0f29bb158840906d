"""Checks a `config.properties` without starting anything, and the models that it names: `trivium check --ts-config`.

Every value is shown with where it stands; what a server would only log is a finding here.
"""

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trivium.app import Catalogue
from trivium.commands.command_line import read_properties
from trivium.config.options import ServerConfig
from trivium.devices import count_gpus
from trivium.examination import Examination
from trivium.machine.control_group import usable_processors
from trivium.servers.torchserve.archive.repository import TorchServeFormat
from trivium.servers.torchserve.command.command import no_pair
from trivium.servers.torchserve.command.properties_table import CONFIG
from trivium.servers.torchserve.command.settings import TorchServeSettings, exposure, settle
from trivium.servers.torchserve.command.sources import gather
from trivium.types.errors import ConfigError, ServeError
from trivium.types.findings import Finding, Severity
from trivium.types.interfaces import Format
from trivium.types.sources import SourceSetting
from trivium.types.spec import InvalidModel, ModelSpec, Origin

_SECRET = "keystore_pass"


@dataclass(frozen=True, slots=True)
class CheckedProperties:
    """Lists what is to be said of a file, each property with its value and its origin, and what a server would be."""

    findings: tuple[Finding, ...]
    values: Sequence[tuple[str, str, str]]
    settings: TorchServeSettings | None = None

    @property
    def is_servable(self) -> bool:
        """Would a server start with it, and load what it names?"""
        return all(finding.severity is not Severity.ERROR for finding in self.findings)

    def formats(self, known: Sequence[Format]) -> Sequence[Format]:
        """Return the formats that are known, TorchServe's under the rules of this file."""
        if self.settings is None:
            return known
        form = TorchServeFormat(self.settings.rules, os.environ)
        return [form if isinstance(each, TorchServeFormat) else each for each in known]


def check_properties(
    catalogue: Catalogue, file: Path, store: str, environment: Mapping[str, str]
) -> CheckedProperties:
    """Check a file as `torchserve --ts-config FILE --model-store STORE` would read it. Raises Refused."""
    flags = (
        {"model_store": SourceSetting(store, Origin("the command line", "--model-store"))} if store else {}
    )
    sources = gather(read_properties(file), flags, environment)
    values = []
    for name in (*sources.settings, *(name for name in CONFIG.rows if name not in sources.settings)):
        shown = "***" if name == _SECRET and sources.is_given(name) else sources.text(name)
        values.append((name, shown, str(sources.origin(name)) if sources.is_given(name) else "default"))
    findings = tuple(sources.findings)
    if sources.faults:
        return CheckedProperties(findings, values)
    try:
        machine = usable_processors(), count_gpus()
        settings = settle(catalogue, sources, no_pair, machine, {})
    except ConfigError as error:
        return CheckedProperties((*findings, *error.findings), values)
    except ServeError as error:
        return CheckedProperties((*findings, _fault(file, error.message)), values)
    # The first notices are the findings.
    notices = [
        Finding(Severity.NOTICE, str(file), None, "", text) for text in settings.notices[len(findings) :]
    ]
    if loud := exposure(settings):
        notices.append(Finding(Severity.NOTICE, str(file), None, "", loud))
    failures = [_fault(file, f"{item}: {why}") for item, why in settings.startup.failures]
    return CheckedProperties((*findings, *notices, *failures), values, settings)


def _fault(file: Path, text: str) -> Finding:
    return Finding(Severity.ERROR, str(file), None, "", text)


async def examine_startup(
    checked: CheckedProperties, config: ServerConfig
) -> AsyncIterator[ModelSpec | InvalidModel]:
    """Read the models that a server would start with, without serving them; each is given as soon as it is known."""
    assert checked.settings is not None, "its file has no fault"
    catalogue = checked.settings.catalogue
    async with Examination(catalogue, config, checked.formats(catalogue.formats)) as examination:
        for model in checked.settings.startup.models:
            try:
                model.add_to(examination)
            except ServeError as error:
                place = model.path or Path(model.item)
                yield InvalidModel(model.item, place, (_fault(place, error.message),))
        async for one in examination.models():
            yield one
