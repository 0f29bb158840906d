"""Models of trees as Triton's backend `fil` describes them: its parameters, checked, and as our engines of trees take
them.

Source: the backend's own documentation of its configuration; `output_class` is what `is_classifier` was called before.
Those of its parameters that choose kernels mean nothing here; the engine reports them.
"""

from collections.abc import Iterator, Mapping

from trivium.codecs.near_names import near
from trivium.servers.triton.repository.environments import key_of
from trivium.servers.triton.words.backends import FOREST, KINDS_OF_FOREST, Backend
from trivium.servers.triton.words.config_text import ConfigText
from trivium.servers.triton.words.datatypes import datatype_of
from trivium.types.datatype import DataType
from trivium.types.findings import Change, Finding
from trivium.types.spec import Origin

_KIND, _SCORES, _THRESHOLD = "model_type", "predict_proba", "threshold"
_CLASSIFIES = ("is_classifier", "output_class")
_SWITCHES: Mapping[str, bool] = {"true": True, "1": True, "false": False, "0": False}
_LENIENT = "xgboost_allow_unknown_field"
_OWN = (_KIND, _SCORES, *_CLASSIFIES, _LENIENT)
SHAPLEY = "treeshap_output"
_ANY_NUMBER = frozenset[str]()
_KERNELS: Mapping[str, frozenset[str]] = {
    "storage_type": frozenset({"AUTO", "DENSE", "SPARSE", "SPARSE8"}),
    "algo": frozenset({"ALGO_AUTO", "NAIVE", "TREE_REORG", "BATCH_TREE_REORG"}),
    "layout": frozenset({"depth_first", "breadth_first", "layered"}),
    "chunk_size": _ANY_NUMBER,
    "blocks_per_sm": _ANY_NUMBER,
    "transfer_threshold": _ANY_NUMBER,
    "threads_per_tree": _ANY_NUMBER,
    "use_experimental_optimizations": frozenset(_SWITCHES),
}
"""What chooses how the original computes, and no answer -> its words."""

_NAMES = (*_OWN, *_KERNELS, _THRESHOLD)
_NUMBERS = (DataType.FP32, DataType.FP64)
_CHECKPOINT = "treelite_checkpoint"
_TREELITE = (
    "Save the model in its own library's form (XGBoost's JSON, LightGBM's text), or convert it to ONNX, by skl2onnx "
    'for example, with backend: "onnxruntime".'
)


def check(text: ConfigText, backend: Backend) -> Iterator[Finding]:
    """Find what is wrong with the parameters of a model of trees."""
    if backend.name != FOREST:
        return
    kind = _value(text, _KIND)
    if kind == _CHECKPOINT:
        found = f"{_KIND} {kind}: checkpoints of Treelite are not read in this version"
        yield text.fault(key_of(text, _KIND), found, _kinds(), _TREELITE)
    elif kind and kind not in KINDS_OF_FOREST:
        yield text.fault(key_of(text, _KIND), f"{_KIND} {kind}", _kinds(), "Write one of them.")
    for name in (_SCORES, *_CLASSIFIES, _LENIENT):
        if (word := _value(text, name)) and word.lower() not in _SWITCHES:
            yield text.fault(key_of(text, name), f"{name} {word}", "true or false", "Write one of them.")
    if _is_on(text, _SCORES) and not _classifies(text):
        hint = f"Add {_CLASSIFIES[0]} with the value true, or remove {_SCORES}."
        found = f"{_SCORES} of a model that is no classifier"
        yield text.fault(key_of(text, _SCORES), found, f"{_CLASSIFIES[0]} true beside it", hint)
    if word := _value(text, _THRESHOLD):
        try:
            is_share = 0 <= float(word) <= 1
        except ValueError:
            is_share = False
        if not is_share:
            found, expected = f"{_THRESHOLD} {word}", "a probability, from 0 to 1"
            yield text.fault(key_of(text, _THRESHOLD), found, expected, "Correct it, or remove it.")
    yield from _check_tensors(text)
    yield from _check_kernels(text)
    yield from _check_names(text)


def _check_kernels(text: ConfigText) -> Iterator[Finding]:
    """Find words that the original would refuse, and report that the others change no answer."""
    for name in (one for one in _KERNELS if one in text.config.parameters):
        word, words = _value(text, name), _KERNELS[name]
        fits = word.lower() in {one.lower() for one in words} if words else word.lstrip("-").isdecimal()
        if word and not fits:
            expected = f"one of {', '.join(sorted(words))}" if words else "a number"
            hint = f"Correct it, or remove it: {name} changes no answer here."
            yield text.fault(key_of(text, name), f"{name} {word[:80]}", expected, hint)
        else:
            yield text.notice(
                key_of(text, name), f"{name} chooses kernels of the original; answers are the same"
            )


def _check_names(text: ConfigText) -> Iterator[Finding]:
    """Find parameters that are no names of the backend's, or of our engines', and near to one."""
    for name in text.config.parameters:
        if name not in _NAMES and (meant := near(name, _NAMES)):
            yield text.fault(
                key_of(text, name),
                f"{name[:80]}, which is no parameter of the backend {FOREST}",
                f"one of {', '.join(_NAMES)}",
                f"Did you mean {meant}?",
                Change(name=meant),
            )


def _check_tensors(text: ConfigText) -> Iterator[Finding]:
    for number, block in enumerate(text.config.input):
        if block.data_type and (kind := datatype_of(block.data_type)) not in _NUMBERS:
            found = f"an input of TYPE_{kind.name} of a model of trees"
            hint = "Write TYPE_FP32: numbers of a table are sent as they are."
            yield text.fault(f"input[{number}].data_type", found, "TYPE_FP32 or TYPE_FP64", hint)
    outputs = [block for block in text.config.output if block.name != SHAPLEY]
    for section, count in (("input", len(text.config.input)), ("output", len(outputs))):
        if count > 1:
            found = f"{count} {section}s of a model of trees"
            yield text.fault(section, found, f"one, and {SHAPLEY}", f"Leave {section}__0 alone.")


def translated(text: ConfigText, backend: Backend, parameters: Mapping[str, str]) -> Mapping[str, str]:
    """Return the parameters of a checked model as its engine takes them."""
    if backend.name != FOREST:
        return parameters
    answer = "values"
    if _classifies(text):
        answer = "probabilities" if _is_on(text, _SCORES) else "classes"
    kept = {name: value for name, value in parameters.items() if name not in (*_OWN, *_KERNELS)}
    return {"answer": answer, **kept}


def origins(text: ConfigText, backend: Backend) -> dict[str, Origin]:
    """Return where what the engine takes was found."""
    if backend.name != FOREST:
        return {}
    named = next((name for name in (_SCORES, *_CLASSIFIES) if _is_on(text, name)), "")
    key = key_of(text, named) if named else ""
    place = (
        Origin(text.file, key.partition(".")[0], text.line(key))
        if named
        else Origin("default of the backend fil", "")
    )
    return {"parameters[answer]": place}


def _kinds() -> str:
    return f"one of {', '.join(KINDS_OF_FOREST)}"


def _value(text: ConfigText, name: str) -> str:
    return text.config.parameters[name].string_value.strip() if name in text.config.parameters else ""


def _is_on(text: ConfigText, name: str) -> bool:
    return _SWITCHES.get(_value(text, name).lower(), False)


def _classifies(text: ConfigText) -> bool:
    return any(_is_on(text, name) for name in _CLASSIFIES)
