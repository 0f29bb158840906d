"""Bounds the adapters of a model: their ranks, their number, and the bytes of their weights. Pure."""

from dataclasses import dataclass

from trivium.engines.hf.options import GenerationOptions

MOST_ADAPTERS = 64
"""Adapters that are held at once where nobody says how many."""


@dataclass(frozen=True, slots=True)
class AdapterLimits:
    """Bounds the adapters of a model: of a `rank` at most, so many in `number`, and in `bytes`."""

    rank: int
    number: int
    bytes: int
    setting: str = ""
    """The setting that says the number, if one does."""

    def shortage(self, held: int, held_bytes: int, size: int) -> str:
        """Say why one more adapter of this size has no room with those that are held; empty where it has."""
        if held >= self.number:
            said = (
                f"{self.setting} is {self.number}" if self.setting else f"{self.number} are held by default"
            )
            return f"{held} adapters are held, and {said}. Unregister one, or set max_cpu_loras to more."
        if held_bytes + size > self.bytes:
            return (
                f"its weights take {size} bytes, the adapters that are held, those of running requests among them, "
                f"{held_bytes}, and lora_bytes is {self.bytes}. Unregister one, or set lora_bytes to at least "
                f"{held_bytes + size}."
            )
        return ""


def limits_of(chosen: GenerationOptions) -> AdapterLimits:
    """Return the bounds that a model's options say. All its adapters stay in memory: `max_cpu_loras` bounds them, or
    `max_loras` where that alone is said.
    """
    for setting, number in (("max_cpu_loras", chosen.max_cpu_loras), ("max_loras", chosen.max_loras)):
        if number is not None:
            return AdapterLimits(chosen.max_lora_rank, number, chosen.lora_bytes, setting)
    return AdapterLimits(chosen.max_lora_rank, MOST_ADAPTERS, chosen.lora_bytes)
