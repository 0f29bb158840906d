"""Translates the options of DJL's native engines to parameters of ours, each with where it was found.

Source: spec sheet `djl`, section 3.3; the names are those of the engine's row in `dialects/djl/engines`. A value that
cannot be is an error here, where its line is known.
"""

from trivium.dialects.djl.engines import DjlEngine
from trivium.dialects.djl.settings import DjlSettings, Setting


def parameters(settings: DjlSettings, engine: DjlEngine) -> dict[str, Setting[str]]:
    """Return the parameters of our engine. DJL gives each worker one thread and runs more workers instead; torch's
    threads are the whole process's, so that one model does not decide about them.
    """
    made: dict[str, Setting[str]] = {}
    for option in engine.options:
        if not option.choices:
            threads = settings.number([option.key], 1, 0, "DJL's default: one thread per worker")
            made[option.parameter] = Setting(str(threads.value), threads.origin)
            continue
        written = settings.text([option.key])
        if not written.value:
            continue
        value = option.choices.get(written.value.lower())
        if value is None:
            found, expected = f"{option.key}={written.value}", f"one of {', '.join(option.choices)}"
            settings.fault(option.key, found, expected, "Write one of them, or remove the line.")
        else:
            made[option.parameter] = Setting(value, written.origin)
    _check_device(settings, engine.devices)
    return made


def _check_device(settings: DjlSettings, devices: tuple[str, ...]) -> None:
    key = "option.ortDevice"
    device = settings.text([key]).value
    if device and devices and device.lower() not in map(str.lower, devices):
        *first, last = devices
        settings.fault(key, f"{key}={device}", f"{', '.join(first)} or {last}", "Remove the line.")
