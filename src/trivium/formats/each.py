"""Reads model after model: whatever is wrong with one is that model's finding, and its neighbours are read."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from trivium.codecs.visible_text import visible
from trivium.files import oddity
from trivium.types.errors import ConfigError, frameless, named, said_by
from trivium.types.findings import Finding, Severity
from trivium.types.registered_names import unfit_name
from trivium.types.spec import InvalidModel, ModelSpec, ReadResult

log = logging.getLogger(__name__)


def read_each(
    places: Iterable[Path], read: Callable[[Path], list[ModelSpec]], name_of: Callable[[Path], str]
) -> ReadResult:
    """Return what `read` makes of each place, a folder or a file; `name_of` gives the name of a model that cannot be
    read. Never raises.
    """
    specs: list[ModelSpec] = []
    unreadable: list[InvalidModel] = []
    for place in places:
        try:
            _check_name(place)
            found = read(place)
            for spec in found:
                _check_entry(spec)
            specs += found
        except ConfigError as error:
            unreadable.append(
                InvalidModel(visible(name_of(place)), place, tuple(map(_written, error.findings)))
            )
        except OSError as error:
            unreadable.append(unopened(visible(name_of(place)), place, frameless(error)))
        except Exception as error:
            log.exception("reading %s failed", visible(str(place)))
            found_text = f"reading it failed: {named(error)}"
            fault = _fault(place, found_text, "a model folder or file", "Report it, with the folder.")
            unreadable.append(InvalidModel(visible(name_of(place)), place, (fault,)))
    return ReadResult(tuple(specs), tuple(unreadable))


def unopened(name: str, place: Path, error: OSError) -> InvalidModel:
    """Return the model whose files cannot be looked at."""
    found, file = said_by(error), str(error.filename or place)
    if file.startswith(f"{place}/"):
        found += f": {file[len(str(place)) + 1 :]}"
    hint = "Correct its rights, or take it out of the folder."
    return InvalidModel(name, place, (_fault(place, found, "readable files and folders", hint),))


def _written(finding: Finding) -> Finding:
    """Return the finding as every wire can carry it: names of files may be no UTF-8."""
    file, key, found = map(visible, (finding.file, finding.key, finding.found))
    return replace(finding, file=file, key=key, found=found)


def _check_name(place: Path) -> None:
    if unfit_name(place.name):
        found = "a name with bytes that are no UTF-8, or with control characters"
        raise ConfigError((_fault(place, found, "a name that can be written and asked for", "Rename it."),))


def _check_entry(spec: ModelSpec) -> None:
    path = spec.root / spec.entry
    if spec.entry and (odd := oddity(path)):
        raise ConfigError((_fault(path, odd, "the model's file", "Put the file in its place."),))


def _fault(place: Path, found: str, expected: str, hint: str) -> Finding:
    return _written(Finding(Severity.ERROR, str(place), None, "", found, expected, hint))
