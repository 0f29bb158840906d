"""A manifest that names a built-in handler for language models, `llm_api` or `vllm_handler`: a spec of the engine.

Foreign words end here. Source: spec sheet `torchserve`, section 10. The weights lie at MODEL_PATH, or in the model's
folder.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from trivium.formats.checkpoint.checkpoint import ENGINE, CheckpointReading, read_checkpoint
from trivium.servers.torchserve.archive import sequences, translation
from trivium.servers.torchserve.words.language_model import (
    DTYPES,
    END_OF_STREAM,
    TOKENS,
    LanguageModelSettings,
)
from trivium.servers.torchserve.words.layers import NO_RULES, ServerRules
from trivium.servers.torchserve.words.manifest import Manifest
from trivium.servers.torchserve.words.model_config import ModelConfig
from trivium.servers.torchserve.words.vllm_handler import VLLM, translated
from trivium.types.errors import ConfigError
from trivium.types.findings import Severity
from trivium.types.spec import (
    All,
    Defaults,
    Device,
    Foreign,
    InstanceGroup,
    ModelSpec,
    Origin,
)

_EXPECTED = "the path of a folder with config.json and safetensors, or with a .gguf file"
OPENAI = "openai_paths"
"""The parameter of a model that is asked below its predictions as OpenAI's API is."""

_PLACES = ("auto", "cpu", "cuda", "cuda:0")


@dataclass(slots=True)
class LanguageModel:
    """One model of the handler `llm_api`, or of `vllm_handler` where it `is_vllm`; `spec` is made once."""

    name: str
    folder: Path
    manifest: Manifest
    config: ModelConfig
    variables: Mapping[str, str]
    rules: ServerRules = NO_RULES
    is_vllm: bool = False
    _origin: dict[str, Origin] = field(default_factory=dict)
    _parameters: dict[str, str] = field(default_factory=dict)
    _aliases: tuple[str, ...] = ()

    def spec(self, defaults: Defaults) -> ModelSpec:
        """Return the spec. Raises ConfigError with all that is wrong, and OSError."""
        manifest, config = self.manifest, self.config
        settings = self._settings()
        handler = Origin(manifest.file, "model.handler", manifest.lines.get("model.handler"))
        groups, notices = translation.groups(self.name, config, defaults)
        settings.findings += [*notices, *sequences.check(config, may_be=False)]
        self._check_handling(settings, handler)
        groups = self._placed(settings, groups, defaults)
        trusts, _ = settings.text("TRUST_REMOTE_CODE")
        root, where = self._root(settings)
        made = CheckpointReading("")
        if root is not None:
            made = read_checkpoint(root, trusts == "true", "write handler.trust_remote_code: true")
            settings.findings += made.findings
        self._set_up(settings, made)
        if any(one.severity is Severity.ERROR for one in settings.findings) or root is None:
            raise ConfigError(tuple(settings.findings))
        of_handlers = ("handler", "batching", "scheduling", "entry", "engine")
        origin = {
            key: value
            for key, value in translation.origins(
                manifest, config, defaults, Origin("", ""), self.rules
            ).items()
            if not key.startswith(of_handlers)
        }
        rule = Origin("rule for generated text: the engine joins requests, step by step", "")
        own = {"root": where, "entry": where, "engine": handler, "batching": rule, "streams": rule}
        return ModelSpec(
            name=self.name,
            version=manifest.version,
            root=root,
            engine=ENGINE,
            entry=made.entry,
            groups=groups,
            limits=translation.limits(config, defaults, self.rules),
            streams=True,
            version_policy=All(),
            parameters=self._parameters,
            details=made.details,
            aliases=self._aliases,
            foreign=Foreign("torchserve", (manifest, config)),
            origin={**origin, **own, **made.origin(), **self._origin},
            reports=tuple(settings.findings),
        )

    def _settings(self) -> LanguageModelSettings:
        """Return the settings, whose names have been looked at."""
        said = [*self.manifest.findings, *self.config.findings]
        if self.is_vllm:
            told = translated(self.config)
            self._aliases = tuple(name for name in told.names if name != self.name)
            self._put(OPENAI, "true", Origin(VLLM, ""))
            return LanguageModelSettings(self.config, {}, [*said, *told.findings], told.block, told.shown)
        settings = LanguageModelSettings(self.config, self.variables, said)
        settings.check_names()
        self._check_name(settings)
        return settings

    def _check_handling(self, settings: LanguageModelSettings, handler: Origin) -> None:
        """Tell of what says how a handler is called: this one is built in."""
        if self.rules.envelope:
            found = f"service_envelope={self.rules.envelope} has no effect here: requests are the LLM-API's"
            settings.notice(handler, found)
        if translation.is_async(self.config) and not self.is_vllm:
            settings.findings.append(
                self.config.notice(translation.ASYNC, "it has no effect: the handler is built in")
            )

    def _check_name(self, settings: LanguageModelSettings) -> None:
        name, origin = settings.text("MODEL_NAME", self.name)
        if name != self.name:
            settings.notice(origin, f"MODEL_NAME={name[:80]}, and the manifest names the model {self.name}")

    def _root(self, settings: LanguageModelSettings) -> tuple[Path | None, Origin]:
        text, origin = settings.text("MODEL_PATH")
        if not text:
            return self.folder, Origin("rule: without MODEL_PATH the model's folder", "")
        found = f"MODEL_PATH={text[:200]}, where there is no folder"
        hint = "Correct the path; an id of the Hugging Face hub is not fetched: download it, and name its folder."
        try:
            path = self.folder / text
            if "://" not in text and path.is_dir():
                return path, origin
        except (OSError, ValueError):
            pass
        settings.fault(origin, found, _EXPECTED, hint)
        return None, origin

    def _placed(
        self, settings: LanguageModelSettings, groups: tuple[InstanceGroup, ...], defaults: Defaults
    ) -> tuple[InstanceGroup, ...]:
        """Return the groups where DEVICE_MAP wants them."""
        text, origin = settings.text("DEVICE_MAP", "auto")
        word = text.lower()
        if word not in _PLACES:
            hint = "A model runs on the CPU or on one GPU: write auto."
            settings.fault(origin, f"DEVICE_MAP={text[:80]}", ", ".join(_PLACES), hint)
        elif word.startswith("cuda") and not defaults.gpus:
            settings.fault(
                origin, f"DEVICE_MAP={word}, and this server sees no GPU", "auto or cpu", "Write auto."
            )
        elif word != "auto":
            self._origin["groups[0].device"] = origin
            gpus = (0,) if word == "cuda:0" else tuple(range(defaults.gpus))
            device, ids = (Device.CPU, ()) if word == "cpu" else (Device.GPU, gpus)
            return tuple(replace(one, device=device, device_ids=ids) for one in groups)
        return groups

    def _set_up(self, settings: LanguageModelSettings, made: CheckpointReading) -> None:
        """Fill in the engine's parameters, and those of the protocol."""
        self._slots(settings)
        for name in ("PREFILL_CHUNK", "THREADS"):
            self._put(name.lower(), *settings.number(name))
        for name in ("TRUST_REMOTE_CODE", "LOGITS_PROCESSORS"):
            self._put(name.lower(), *settings.text(name))
        if self.is_vllm:
            self._put("max_context", *settings.number("MAX_CONTEXT"))
        else:
            self._set_up_texts(settings, made)
        self._compute(settings)

    def _set_up_texts(self, settings: LanguageModelSettings, made: CheckpointReading) -> None:
        """Fill in what the LLM-API says of texts."""
        longest, where = settings.number("MAX_INPUT_TOKENS", TOKENS)
        most, most_from = settings.number("MAX_NEW_TOKENS", TOKENS)
        self._put("max_input_tokens", longest, where)
        self._put("max_new_tokens", most, most_from)
        self._context(settings, made, (longest or TOKENS) + (most or TOKENS))
        self._put("end_of_stream_token", *settings.text("END_OF_STREAM_TOKEN", END_OF_STREAM))

    def _compute(self, settings: LanguageModelSettings) -> None:
        """Fill in how numbers are kept."""
        text, origin = settings.text("DTYPE")
        if text.removeprefix("torch.").lower() in DTYPES:
            self._put("dtype", DTYPES[text.removeprefix("torch.").lower()], origin)
        elif text:
            settings.fault(
                origin, f"DTYPE={text[:80]}", "bfloat16, float16, float32 or auto", "Write one of them."
            )
        text, origin = settings.text("QUANTIZATION", "None")
        if text.lower() not in ("none", "null"):
            found = (
                f"QUANTIZATION={text[:80]} needs CUDA and bitsandbytes, and is not supported in this version"
            )
            hint = "Write None; DTYPE=bfloat16 takes half the memory of float32, and a .gguf file can be served, too."
            settings.fault(origin, found, "None", hint)

    def _slots(self, settings: LanguageModelSettings) -> None:
        slots, origin = settings.number("SLOTS")
        batch, line = self.config.number("batchSize"), self.config.lines.get("batchSize")
        if slots is None and batch and not self.is_vllm:
            slots, origin = batch, Origin(self.config.file, "batchSize", line)
        self._put("slots", slots, origin)
        if "maxBatchDelay" in self.config.values:
            settings.findings.append(
                self.config.notice(
                    "maxBatchDelay", "has no effect: a request joins those that run at the next step"
                )
            )

    def _context(self, settings: LanguageModelSettings, made: CheckpointReading, wanted: int) -> None:
        """Set the context: as asked for, else room for both counts of tokens, if the model has as much."""
        asked, origin = settings.number("MAX_CONTEXT")
        if asked is not None:
            self._put("max_context", asked, origin)
        elif wanted < (made.context or wanted + 1):
            self._put("max_context", wanted, Origin("MAX_INPUT_TOKENS and MAX_NEW_TOKENS together", ""))

    def _put(self, name: str, value: object, origin: Origin) -> None:
        if value not in (None, ""):
            self._parameters[name] = str(value)
            self._origin[f"parameters[{name}]"] = origin
