"""Translates the options of DJL's native engines to parameters of ours, each with where it was found.

Source: spec sheet `djl`, section 3.3; the names are those of the engine's row in `dialects/djl/engines`. A value that
cannot be leaves the engine's own default: `dialects/djl/judging` refuses it.
"""

from trivium.dialects.djl.engines import DjlEngine
from trivium.dialects.djl.settings import DjlSettings, Setting
from trivium.dialects.djl.values import FORMS, ValueType


def parameters(settings: DjlSettings, engine: DjlEngine) -> dict[str, Setting[str]]:
    """Return the parameters of our engine. DJL gives each worker one thread and runs more workers instead; torch's
    threads are the whole process's, so that one model does not decide about them.
    """
    made: dict[str, Setting[str]] = {}
    for option in engine.options:
        if not option.choices:
            threads = settings.number([option.key], 1, "DJL's default: one thread per worker")
            made[option.parameter] = Setting(str(threads.value), threads.origin)
            continue
        written = settings.text([option.key])
        if not written.value:
            continue
        is_switch = FORMS[option.key].kind is ValueType.SWITCH
        word = str(settings.switch(option.key).value) if is_switch else written.value
        value = option.choices.get(word.lower())
        if value is not None:
            made[option.parameter] = Setting(value, written.origin)
    return made
