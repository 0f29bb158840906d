"""One option of LMI: which runtimes knew it, its type and default, and what becomes of it here; and rows by groups.

What becomes of an option of `serving.properties` with a handler of one's own is told by `keys.PYTHON`. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from trivium.servers.djl.words.lmi_runtimes import LmiRuntime
from trivium.settings.kinds import TEXT, Form, Kind, Number, Whole
from trivium.settings.setting import Setting, Support

PREFIX = "option."
COUNT = Whole(1)
SHARE = Number(0, 1)
JSON = Form("JSON", str)
LIST = Form("a list with commas", str)
PATH = Form("a path", str)


@dataclass(frozen=True, slots=True)
class LmiOption:
    """A row of the table: `setting` says all but which `runtimes` know it, or knew it once, and which of its values are
    refused though it is used.
    """

    setting: Setting
    runtimes: tuple[LmiRuntime, ...]
    refuses: tuple[str, ...] = ()

    def fate(self, value: str) -> Support:
        """Return what becomes of a value that the type allows."""
        word = value.strip().lower()
        if word in self.refuses:
            return Support.REFUSED
        return Support.YES if word in self.setting.harmless else self.setting.support

    @property
    def removed(self) -> str:
        """The release since which no runtime of DJL's knows it; empty where one does."""
        gone = [runtime.removed for runtime in self.runtimes]
        return gone[-1] if gone and "" not in gone else ""


def row(name: str, kind: Kind = TEXT, default: str = "", *harmless: str) -> Setting:
    """Return a row without its fate. The default, and what is `harmless`, wish for nothing where it is not used. A name
    without a dot is one of an option; one that begins with a slash is a key as it stands.
    """
    key = name[1:] if name.startswith("/") else PREFIX + name
    words = dict.fromkeys(("", default.lower(), *harmless))
    return Setting(key, kind, default, harmless=tuple(words))


def used(
    runtimes: tuple[LmiRuntime, ...], *rows: Setting, how: str = "", refuses: tuple[str, ...] = ()
) -> dict[str, LmiOption]:
    """Return options that the engine uses, but for values that it `refuses`."""
    found = _options(runtimes, Support.YES, how, rows)
    return {key: replace(option, refuses=refuses) for key, option in found.items()}


def reported(runtimes: tuple[LmiRuntime, ...], why: str, *rows: Setting) -> dict[str, LmiOption]:
    """Return options without which answers are the same; `why` says so."""
    return _options(runtimes, Support.REPORTED, why, rows)


def refused(runtimes: tuple[LmiRuntime, ...], way_out: str, *rows: Setting) -> dict[str, LmiOption]:
    """Return options that refuse a model."""
    return _options(runtimes, Support.REFUSED, way_out, rows)


def removed(runtime: LmiRuntime, write: str, *rows: Setting) -> dict[str, LmiOption]:
    """Return options that went with their runtime; `write` says what to do with the line."""
    why = f"removed upstream with {runtime.name} in {runtime.removed}: {write}"
    return _options((runtime,), Support.REPORTED, why, rows)


def _options(
    runtimes: tuple[LmiRuntime, ...], support: Support, how: str, rows: tuple[Setting, ...]
) -> dict[str, LmiOption]:
    return {
        each.name: LmiOption(
            Setting(
                each.name,
                each.kind,
                each.default,
                support=support,
                how=how,
                harmless=() if support is Support.YES else each.harmless,
            ),
            runtimes,
        )
        for each in rows
    }


def settings_of(options: Mapping[str, LmiOption]) -> dict[str, Setting]:
    """Return the rows as a table of keys."""
    return {key: option.setting for key, option in options.items()}
