"""Settings of the handler `llm_api`: their names in the environment and in model-config.yaml, and what they may be.

Source: spec sheet `torchserve`, section 10. A model's own file goes before the environment, which is every model's.
Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from trivium.codecs.near_names import near
from trivium.servers.torchserve.words.model_config import ModelConfig
from trivium.types.findings import Finding, Severity
from trivium.types.spec import Origin

BLOCK = "handler"
"""The key of model-config.yaml below which the settings stand, in small letters or capitals."""

NAMES = (
    *(
        "MODEL_NAME",
        "MODEL_PATH",
        "DEVICE_MAP",
        "MAX_INPUT_TOKENS",
        "MAX_NEW_TOKENS",
        "DTYPE",
        "QUANTIZATION",
    ),
    "END_OF_STREAM_TOKEN",
)
OURS = ("SLOTS", "PREFILL_CHUNK", "MAX_CONTEXT", "THREADS", "TRUST_REMOTE_CODE", "LOGITS_PROCESSORS")
"""Further settings of the engine, which the file alone may have."""

TOKENS = 2048
"""The default of both MAX_INPUT_TOKENS and MAX_NEW_TOKENS."""

END_OF_STREAM = "<|endoftext|>"
DTYPES = {
    **dict.fromkeys(("auto",), "auto"),
    **dict.fromkeys(("float32", "fp32"), "fp32"),
    **dict.fromkeys(("float16", "fp16"), "fp16"),
    **dict.fromkeys(("bfloat16", "bf16"), "bf16"),
}
_LARGEST = 2**31 - 1

_OF_VLLM = ("vllm_engine_config", "adapters")
"""Keys of the handler `vllm_handler`, by which many come to this one."""


@dataclass(slots=True)
class LanguageModelSettings:
    """Reads the settings of one model; `findings` grows with each fault. A handler that has other words for them has
    made them a `block` of ours, each `shown` by the key that it was written under.
    """

    config: ModelConfig
    variables: Mapping[str, str]
    findings: list[Finding] = field(default_factory=list)
    block: Mapping[str, object] | None = None
    shown: Mapping[str, str] = field(default_factory=dict)

    def text(self, name: str, default: str = "") -> tuple[str, Origin]:
        """Return a setting and where it stands; where it does not, the default."""
        for key, value in self._block().items():
            if key.upper() == name and value is not None:
                text = str(value).lower() if isinstance(value, bool) else str(value)
                return text.strip(), self._place(key)
        value = self.variables.get(name, "").strip() if name in NAMES else ""
        return (value, Origin("the environment", name)) if value else (default, Origin("default", ""))

    def number(self, name: str, default: int | None = None) -> tuple[int | None, Origin]:
        """Return a setting that counts something, from 1 on."""
        text, origin = self.text(name)
        if not text:
            return default, origin
        if text.isascii() and text.isdigit() and len(text) < 11 and 0 < int(text) <= _LARGEST:
            return int(text), origin
        self.fault(origin, f"{name}={text[:80]}", f"a number from 1 to {_LARGEST}", "Write digits alone.")
        return default, origin

    def fault(self, origin: Origin, found: str, expected: str, hint: str) -> None:
        """Note an error at a setting."""
        self.findings.append(
            Finding(Severity.ERROR, origin.file, origin.line, origin.key, found, expected, hint)
        )

    def notice(self, origin: Origin, found: str, hint: str = "") -> None:
        """Note something to know."""
        self.findings.append(Finding(Severity.NOTICE, origin.file, origin.line, origin.key, found, "", hint))

    def check_names(self) -> None:
        """Note each key of the block that is no setting."""
        for key in self._block():
            if key.upper() not in (*NAMES, *OURS):
                self.fault(self._place(key), f"{key[:80]}, which is no setting of llm_api", "", _meant(key))
        block = self.config.document.get(BLOCK)
        if block is not None and not isinstance(block, Mapping):
            self.fault(
                self._place(""), f"{block!r}"[:80], "a mapping of settings", "Write one setting per line."
            )

    def _block(self) -> Mapping[str, object]:
        if self.block is not None:
            return self.block
        block = self.config.document.get(BLOCK)
        return block if isinstance(block, Mapping) else {}

    def _place(self, key: str) -> Origin:
        key = self.shown.get(key, key)
        return Origin(self.config.file, f"{BLOCK}.{key}" if key else BLOCK, self.config.lines.get(BLOCK))


def _meant(key: str) -> str:
    """Return the next step for a key that is no setting."""
    if key in _OF_VLLM:
        return "Name the handler vllm_handler, whose key it is, or remove it."
    meant = near(key.upper(), (*NAMES, *OURS))
    return f"Did you mean {meant.lower()}?" if meant else f"Write one of {', '.join((*NAMES, *OURS))}."
