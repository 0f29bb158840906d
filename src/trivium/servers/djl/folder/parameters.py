"""Translates the options of DJL's native engines to parameters of ours, each with where it was found.

Source: spec sheet `djl`, section 3.3; the names are those of the engine's row in `words/engines`. A value that
cannot be leaves the engine's own default: `words/judging` refuses it.
"""

import json
from collections.abc import Sequence
from pathlib import PurePosixPath

from trivium.servers.djl.folder.folder import DjlModelFolder
from trivium.servers.djl.words.engines import DjlEngine, EngineOption
from trivium.servers.djl.words.settings import DjlSettings, Placed
from trivium.servers.djl.words.values import FORMS
from trivium.settings.kinds import SWITCH, Whole
from trivium.types.errors import said_by
from trivium.types.spec import Device, InstanceGroup, Origin

DEFAULT = "DJL's default"
_LIBRARY = "option.customOpLibrary"
_DEVICE = "option.ortDevice"
_ANYWHERE = (Device.CPU, Device.GPU)
_ACCELERATORS = {"tensorrt": (Device.GPU,), "rocm": _ANYWHERE, "coreml": _ANYWHERE}
"""Value of the option in lower case -> the devices on whose workers DJL has it."""


def parameters(
    settings: DjlSettings, engine: DjlEngine, folder: DjlModelFolder, groups: Sequence[InstanceGroup]
) -> dict[str, Placed[str]]:
    """Return the parameters of our engine. DJL gives each worker one thread and runs more workers instead; torch's
    threads are the whole process's, so that one model does not decide about them.
    """
    made = {
        option.parameter: value
        for option in engine.options
        if (value := _parameter(settings, option)) is not None
    }
    if _LIBRARY in engine.keys:
        made |= _library(settings, folder)
    if _DEVICE in engine.keys:
        made |= _provider(settings, groups)
    return made


def _parameter(settings: DjlSettings, option: EngineOption) -> Placed[str] | None:
    form, written = FORMS.get(option.key), settings.text([option.key])
    if not (option.default or written.value):
        return None
    if isinstance(form, Whole):
        number = settings.number([option.key], int(option.default or 0), DEFAULT)
        return Placed(str(number.value), number.origin)
    if option.default and not written.value:
        return Placed(option.default, Origin(DEFAULT, ""))
    if form is None:
        return written
    word = str(settings.switch(option.key).value) if form is SWITCH else written.value
    value = option.choices.get(word.lower())
    return None if value is None else Placed(value, written.origin)


def _library(settings: DjlSettings, folder: DjlModelFolder) -> dict[str, Placed[str]]:
    """Return the library of operators: a file of the folder, or an absolute path."""
    written = settings.text([_LIBRARY])
    if not written.value:
        return {}
    path = PurePosixPath(written.value)
    expected = "a library of the model's folder, or an absolute path"
    try:
        if ".." in path.parts:
            settings.fault(
                _LIBRARY, f"{path}, which leads out of {folder.path}", expected, "Put it into the folder."
            )
        elif not (folder.path / path).is_file():
            settings.fault(
                _LIBRARY, f"no file {folder.path / path}", expected, "Add the library, or correct the path."
            )
    except (OSError, ValueError) as error:
        settings.fault(
            _LIBRARY, f"{_LIBRARY}={written.value[:80]!r}: {said_by(error)}", expected, "Correct the path."
        )
    return {"custom_op_library": written}


def _provider(settings: DjlSettings, groups: Sequence[InstanceGroup]) -> dict[str, Placed[str]]:
    """Return the accelerator that the option asks for, on each kind of device that the model runs on. Whether ONNX
    Runtime has it, the engine says.
    """
    written = settings.text([_DEVICE])
    name = written.value.lower()
    if name not in _ACCELERATORS:
        return {}
    devices = dict.fromkeys(group.device for group in groups if group.device in _ACCELERATORS[name])
    if not devices:
        found = f"{_DEVICE}={written.value}, and the model has no GPU to run on"
        settings.fault(
            _DEVICE, found, "a GPU in load_on_devices", "Remove the line, or serve it where a GPU is."
        )
        return {}
    asked = [{"device": device.value, "name": name} for device in devices]
    return {"accelerators": Placed(json.dumps(asked), written.origin)}
