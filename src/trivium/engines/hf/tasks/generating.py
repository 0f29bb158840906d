"""Texts that a model writes for a text, by `generate`: with beams, sampled or greedy, whole or as their tokens come.

Requests that share a call are padded; where a setting would look at what stands for padding, only texts of one length
share one.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from transformers import StoppingCriteria, StoppingCriteriaList
from transformers.generation.streamers import BaseStreamer

from trivium.codecs.request_fields import field_error
from trivium.engines.hf.tasks.heads import Parameters, PreparedInput
from trivium.engines.hf.tasks.task_model import ROWS, TaskModel, plain, shared
from trivium.engines.hf.tasks.task_requests import PARAMETERS, Text
from trivium.types.errors import said_by
from trivium.types.model_tasks import ModelTask

Send = Callable[[list[str]], bool]
"""Takes what each text goes on with; false where nobody waits for more."""

DEFAULT_NEW_TOKENS: Mapping[ModelTask, int] = {ModelTask.GENERATION: 30}
_DEFAULT_FROM_TEXT = 256
_ANSWERS: Mapping[ModelTask, str] = {
    ModelTask.SUMMARY: "summary_text",
    ModelTask.TRANSLATION: "translation_text",
}
_OURS = frozenset({"seed", "truncation", "return_full_text", "src_lang", "tgt_lang"})
_LOOK_AT_PROMPT = ("repetition_penalty", "no_repeat_ngram_size", "max_length", "min_length")
_LOOK_AT_TEXT = ("encoder_no_repeat_ngram_size",)
_NEUTRAL = (None, 0, 1.0)


class GenerationHead:
    """`{"generated_text"}`, or `summary_text` and `translation_text`; of a model without an encoder the text begins
    with the one that was sent, unless `return_full_text` is false.
    """

    def __init__(self, loaded: TaskModel) -> None:
        self._loaded = loaded
        self._continues = loaded.task is ModelTask.GENERATION
        self._own = _own_settings(loaded)
        self._language = getattr(loaded.tokenizer, "src_lang", None)
        self._prefix = str(self._own.pop("prefix", "") or "") if not self._continues else ""

    def prepare(self, text: Text, parameters: Parameters) -> PreparedInput:
        """Return a text as the row of a call. INVALID for one that is too long, or leaves no room for an answer."""
        self._speak(parameters)
        row = self._loaded.row(self._prefix + plain(text), truncates=parameters.get("truncation", False))
        return PreparedInput([row], text, self._settings(parameters, len(row["input_ids"])))

    def answers(self, prepared: Sequence[PreparedInput], parameters: Parameters) -> list[Any]:
        """Return the answer to each input, as JSON has it: an object, or a list where several were asked for."""
        found: dict[int, Any] = {}
        for numbers in self._batches(prepared, parameters):
            some = [prepared[number] for number in numbers]
            for number, answer in zip(numbers, self._generated(some, parameters), strict=True):
                found[number] = answer
        return [found[number] for number in range(len(prepared))]

    def stream(self, prepared: Sequence[PreparedInput], parameters: Parameters, send: Send) -> None:
        """Write the texts of one request, and send what each goes on with, token by token."""
        settings = prepared[0].beside
        if max(settings.get("num_beams") or 1, settings.get("num_return_sequences") or 1) > 1:
            words = "With num_beams or num_return_sequences nothing is certain before the end, and this model streams."
            raise field_error(
                "parameters.num_beams", f"{words} Leave them out, or serve it without streaming."
            )
        pieces = _Pieces(self._loaded.tokenizer, len(prepared), send)
        self._call(
            prepared, parameters, streamer=pieces, stopping_criteria=StoppingCriteriaList([pieces.stops])
        )

    def _speak(self, parameters: Parameters) -> None:
        """Have the tokenizer mark the language of a text, where it is one that does."""
        tokenizer, source = self._loaded.tokenizer, parameters.get("src_lang")
        for name in ("src_lang", "tgt_lang"):
            language = parameters.get(name)
            if language is None:
                continue
            if not hasattr(tokenizer, "src_lang"):
                raise field_error(
                    f"parameters.{name}", "The model's tokenizer knows no languages. Leave it out."
                )
            if tokenizer.convert_tokens_to_ids(language) in (None, tokenizer.unk_token_id):
                raise field_error(f"parameters.{name}", f"The model knows no language {language[:40]!r}.")
        if self._language is not None:
            tokenizer.src_lang = source or self._language

    def _settings(self, parameters: Parameters, length: int) -> dict[str, Any]:
        """Return what `generate` is called with for a text of so many tokens."""
        said = {name: value for name, value in parameters.items() if name not in _OURS}
        settings = {**self._own, **said}
        if "max_new_tokens" in said:
            settings.pop("max_length", None) if "max_length" not in said else None
        elif not {"max_length", "max_new_tokens"} & settings.keys():
            settings["max_new_tokens"] = DEFAULT_NEW_TOKENS.get(self._loaded.task, _DEFAULT_FROM_TEXT)
        if parameters.get("tgt_lang") is not None:
            token = self._loaded.tokenizer.convert_tokens_to_ids(parameters["tgt_lang"])
            settings["forced_bos_token_id"] = token
        return _feasible(self._within(settings, said, length), said, length if self._continues else 0)

    def _within(self, settings: dict[str, Any], said: Parameters, length: int) -> dict[str, Any]:
        """Keep an answer within the tokens that the model knows."""
        taken = length if self._continues else 0
        room = self._loaded.most - taken
        name = "max_new_tokens" if "max_new_tokens" in settings else "max_length"
        whole = settings[name] - (taken if name == "max_length" else 0)
        if 1 <= whole <= room:
            return settings
        if name in said or room < 1:
            words = f"The text has {length} tokens, and '{name}' is {settings[name]}; the model"
            together = " for both together" if self._continues else ""
            raise field_error(
                f"parameters.{name}",
                f"{words} knows {self._loaded.most}{together}. Send a shorter text, or ask otherwise.",
            )
        settings.pop("max_length", None)
        return {**settings, "max_new_tokens": room}

    def _batches(self, prepared: Sequence[PreparedInput], parameters: Parameters) -> Iterable[list[int]]:
        """Yield the numbers of inputs that share a call."""
        looks = _LOOK_AT_PROMPT if self._continues else _LOOK_AT_TEXT
        groups: dict[object, list[int]] = {}
        for number, one in enumerate(prepared):
            has_length = any(one.beside.get(name) not in _NEUTRAL for name in looks)
            length = len(one.rows[0]["input_ids"]) if has_length or not self._loaded.is_paddable else 0
            alone = number if "seed" in parameters else -1
            key = alone, length, one.beside.get("max_new_tokens")
            groups.setdefault(key, []).append(number)
        beams = max(parameters.get("num_beams", 1), parameters.get("num_return_sequences", 1))
        for group in groups.values():
            lengths = [len(prepared[number].rows[0]["input_ids"]) for number in group]
            for some in shared(lengths, max(ROWS // beams, 1)):
                yield [group[number] for number in some]

    def _generated(self, prepared: Sequence[PreparedInput], parameters: Parameters) -> list[Any]:
        made = self._call(prepared, parameters)
        count = prepared[0].beside.get("num_return_sequences") or 1
        shown = _ANSWERS.get(self._loaded.task, "generated_text")
        answers: list[Any] = []
        for i, one in enumerate(prepared):
            texts = [self._text(ids, one, parameters) for ids in made[i * count : (i + 1) * count].tolist()]
            some = [{shown: text} for text in texts]
            answers.append(some[0] if count == 1 else some)
        return answers

    def _text(self, ids: Sequence[int], prepared: PreparedInput, parameters: Parameters) -> str:
        decode = self._loaded.tokenizer.decode
        text = str(decode(ids, skip_special_tokens=True))
        if self._continues and not parameters.get("return_full_text", True):
            return text[len(decode(prepared.rows[0]["input_ids"], skip_special_tokens=True)) :]
        return text

    def _call(self, prepared: Sequence[PreparedInput], parameters: Parameters, **more: Any) -> torch.Tensor:
        loaded = self._loaded
        if "seed" in parameters:
            torch.manual_seed(parameters["seed"])
        inputs = loaded.padded([one.rows[0] for one in prepared])
        named = {name: inputs[name] for name in ("input_ids", "attention_mask") if name in inputs}
        try:
            made = loaded.model.generate(**named, **prepared[0].beside, **_pad(loaded), **more)
        except ValueError as error:  # how `generate` refuses what does not go together
            raise field_error(
                "parameters", f"The parameters cannot be served: {said_by(error)[:500]}"
            ) from error
        assert isinstance(made, torch.Tensor), "no scores are asked for"
        return made


def _feasible(settings: dict[str, Any], said: Parameters, taken: int) -> dict[str, Any]:
    """Drop a least length of the model's own that the greatest one does not allow. INVALID where both were said."""
    most = settings.get("max_new_tokens") or settings["max_length"] - taken
    for name, least in (("min_new_tokens", 0), ("min_length", taken)):
        if (settings.get(name) or 0) - least <= most:
            continue
        if name in said:
            words = f"The field 'parameters.{name}' is {said[name]}, and an answer has {most} tokens at most"
            raise field_error(f"parameters.{name}", f"{words}. Lower it, or raise max_new_tokens.")
        settings = {key: value for key, value in settings.items() if key != name}
    return settings


def _pad(loaded: TaskModel) -> dict[str, int]:
    """Return what rows that have ended are filled up with, where the model itself does not say."""
    told, own = loaded.model.generation_config.pad_token_id, loaded.tokenizer.pad_token_id
    return {"pad_token_id": own} if told is None and own is not None else {}


def _own_settings(loaded: TaskModel) -> dict[str, Any]:
    """Return the settings of generation that a model's files have: those for its task before those for all. What
    `generate` itself reads of generation_config.json is named where a batch depends on it.
    """
    config, general = loaded.model.config, loaded.model.generation_config
    every = getattr(config, "task_specific_params", None)
    of_task = every.get(loaded.named, {}) if isinstance(every, Mapping) else {}
    known = {*PARAMETERS[loaded.task], "max_new_tokens"} - _OURS
    own = {name: getattr(general, name, None) for name in known}
    told = {name: value for name, value in own.items() if value is not None}
    if isinstance(of_task, Mapping):
        told |= {name: value for name, value in of_task.items() if name in known or name == "prefix"}
    return told


class _Stops(StoppingCriteria):
    """Ends every text once nobody waits any more."""

    def __init__(self) -> None:
        self.is_over = False

    def __call__(self, input_ids: torch.Tensor, scores: Any, **_: Any) -> Any:
        return torch.full((input_ids.shape[0],), self.is_over, device=input_ids.device)


class _Pieces(BaseStreamer):
    """Decodes each text as its tokens come, in the context of what is there, and sends what is new of it: whole
    characters.
    """

    def __init__(self, tokenizer: Any, count: int, send: Send) -> None:
        self.stops = _Stops()
        self._tokenizer = tokenizer
        self._send = send
        self._tokens: list[list[int]] = [[] for _ in range(count)]
        self._sent = [""] * count
        self._has_begun = False

    def put(self, value: torch.Tensor) -> None:
        """Take the next token of each text; what comes first is the prompt."""
        if not self._has_begun:
            self._has_begun = True
            return
        for tokens, token in zip(self._tokens, value.tolist(), strict=True):
            tokens.append(token)
        self._tell(is_last=False)

    def end(self) -> None:
        """Send what is left: pieces of characters that nothing completes."""
        self._tell(is_last=True)

    def _tell(self, is_last: bool) -> None:
        news = []
        for i, tokens in enumerate(self._tokens):
            text = self._tokenizer.decode(tokens, skip_special_tokens=True)
            is_whole = is_last or not text.endswith("\N{REPLACEMENT CHARACTER}")
            begins = text.startswith(self._sent[i])
            news.append(text[len(self._sent[i]) :] if is_whole and begins else "")
            if is_whole and begins:
                self._sent[i] = text
        if any(news) and not self._send(news):
            self.stops.is_over = True
