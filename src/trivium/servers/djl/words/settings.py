"""The values of serving.properties as numbers, switches and devices, each with where it was found.

Source: spec sheet `djl`, sections 2.1, 3 and 7.2. What cannot be read leaves the default, so that one reading names
every fault; `judging` names those of numbers, truth values and words. Units are DJL's; the format turns them into ours.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from trivium.codecs.java_properties import Properties, PropertyEntry
from trivium.servers.djl.words.names import OPTION
from trivium.servers.djl.words.values import fault_of
from trivium.types.findings import Change, Finding, Severity
from trivium.types.spec import Device, Origin

PRIORITY_LEVELS = 10
DEFAULT_PRIORITY = 3
"""Of the header x-priority: any number there, of which the first ten are told apart here; smaller goes first."""

Value = TypeVar("Value")
_GPU = re.compile(r"(?:gpu)?([0-9]{1,3})|gpu")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Placed(Generic[Value]):
    """A value and where it comes from."""

    value: Value
    origin: Origin


@dataclass(slots=True)
class DjlSettings:
    """Reads the entries of one file; `findings` grows with each fault."""

    properties: Properties
    findings: list[Finding] = field(default_factory=list)

    def text(self, keys: Sequence[str], default: str = "", why: str = "DJL's default") -> Placed[str]:
        """The first of these keys that is there and not empty."""
        found = self._first(keys)
        if found is None:
            return Placed(default, Origin(why, ""))
        key, entry = found
        return Placed(entry.value.strip(), self._origin(key))

    def number(self, keys: Sequence[str], default: int, why: str = "DJL's default") -> Placed[int]:
        """The first of these keys that is a number in its range: what is not is `judging`'s to say."""
        for key in keys:
            entry = self.properties.entries.get(key)
            text = entry.value.strip() if entry else ""
            if text and fault_of(key, text) is None:
                return Placed(int(text), self._origin(key))
        return Placed(default, Origin(why, ""))

    def switch(self, key: str, default: bool = False) -> Placed[bool]:
        """A truth value: any word but `true` is false, as DJL reads it."""
        text = self.text([key], str(default).lower())
        return Placed(text.value.lower() == "true", text.origin)

    def environment(self, key: str) -> Mapping[str, str]:
        """`A=1,B=2` as variables."""
        entry = self.properties.entries.get(key)
        variables: dict[str, str] = {}
        for pair in (entry.value if entry else "").split(","):
            name, sign, value = pair.strip().partition("=")
            if not pair.strip():
                continue
            if not sign or not _VARIABLE.fullmatch(name) or "\0" in value:
                self.fault(key, f"{pair.strip()!r}", "NAME=value pairs, split by commas", "Correct the pair.")
            else:
                variables[name] = value
        return variables

    @property
    def takes_adapters(self) -> bool:
        """Tell whether the handler registers adapters."""
        return self.text(["option.enable_lora"], "").value.lower() == "true"

    def devices(self, gpus: int) -> tuple[Placed[tuple[Device, int]], ...]:
        """Return the devices of the model, each with its number, -1 for the CPU. `*` is every GPU, else the CPU."""
        key = "load_on_devices"
        text = self.text([key], "*")
        every = [(Device.GPU, gpu) for gpu in range(gpus)] or [(Device.CPU, -1)]
        devices: dict[tuple[Device, int], None] = {}
        for name in text.value.split(";"):
            name = name.strip().lower()
            device = _device(name)
            if name == "*":
                devices.update(dict.fromkeys(every))
            elif device is None:
                expected = "*, cpu, -1, gpu, gpu0 or 0, split by semicolons"
                self.fault(key, f"the device {name!r}", expected, "Name devices that this server has.")
            elif device[0] is Device.GPU and device[1] >= gpus:
                found = f"the device {name!r}, and this server sees {gpus} GPUs"
                self.fault(key, found, "a GPU that is there, or cpu", "Name another device.")
            else:
                devices[device] = None
        return tuple(Placed(device, text.origin) for device in devices)

    def options(self) -> dict[str, str]:
        """Return the options, their prefix stripped, and all arguments, which the handler gets when it starts."""
        entries = self.properties.entries
        told = {key.removeprefix(OPTION): entries[key].value for key in entries if key.startswith(OPTION)}
        told.pop("env", None)  # the worker's, not the handler's
        return told | {key: entries[key].value for key in entries if not key.startswith(OPTION)}

    def fault(self, key: str, found: str, expected: str, hint: str, *mends: Change) -> None:
        """Note an error at a key of the file, with the changes that its hint names."""
        self._note(Severity.ERROR, key, found, expected, hint, mends)

    def blame(self, file: str, line: int, found: str, expected: str, hint: str) -> None:
        """Note an error in another file of the folder."""
        self.findings.append(Finding(Severity.ERROR, file, line, "", found, expected, hint))

    def notice(self, key: str, found: str, hint: str = "") -> None:
        """Note something to know."""
        self._note(Severity.NOTICE, key, found, "", hint)

    def _note(
        self,
        severity: Severity,
        key: str,
        found: str,
        expected: str,
        hint: str,
        mends: tuple[Change, ...] = (),
    ) -> None:
        file, line = self.properties.place(key)
        self.findings.append(Finding(severity, file, line, key, found, expected, hint, mends=mends))

    def _first(self, keys: Sequence[str]) -> tuple[str, PropertyEntry] | None:
        entries = self.properties.entries
        return next(
            ((key, entries[key]) for key in keys if key in entries and entries[key].value.strip()), None
        )

    def _origin(self, key: str) -> Origin:
        file, line = self.properties.place(key)
        return Origin(file, key, line)


def _device(name: str) -> tuple[Device, int] | None:
    if name in ("cpu", "-1"):
        return Device.CPU, -1
    match = _GPU.fullmatch(name)
    return (Device.GPU, int(match[1] or 0)) if match else None
