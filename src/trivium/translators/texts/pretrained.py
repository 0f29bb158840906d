"""Reads from a model's `config.json` what its labels are, as the library `transformers` writes them."""

from pathlib import Path
from typing import Any, NamedTuple

from trivium.translators.files import read_json, refusal

FILE = "config.json"
_TYPED = ("bert", "albert", "xlnet")


class PretrainedLabels(NamedTuple):
    """The labels of a classifier, by their place in its output."""

    labels: tuple[str, ...]
    is_multi_label: bool


class EntailmentPlaces(NamedTuple):
    """Places of two labels in the output of a model of entailment, and whether it tells its two texts apart."""

    entailment: int = 2
    contradiction: int = 0
    has_token_types: bool = False


def read_pretrained_labels(folder: Path) -> PretrainedLabels:
    """Read `id2label` and `problem_type`. LOAD_FAILED with file and fault where there are no labels."""
    config = read_json(folder, FILE)
    names = config.get("id2label")
    if not isinstance(names, dict) or not names:
        raise refusal(
            f"{FILE}: id2label", "is no object of labels", 'Write {"0": "a label", "1": "another"}.'
        )
    labels = []
    for place in range(len(names)):
        label = names.get(str(place))
        if not isinstance(label, str):
            hint = f"Write a text for each number from 0 to {len(names) - 1}."
            raise refusal(f"{FILE}: id2label", f"has no label {place}", hint)
        labels.append(label)
    is_multi_label = config.get("problem_type") == "multi_label_classification" or len(labels) == 1
    return PretrainedLabels(tuple(labels), is_multi_label)


def read_entailment(folder: Path) -> EntailmentPlaces:
    """Read where entailment and contradiction stand; without the file they stand where most models have them."""
    if not (folder / FILE).is_file():
        return EntailmentPlaces()
    config = read_json(folder, FILE)
    places = {"entail": 2, "contra": 0}
    names = config.get("label2id")
    for name, place in names.items() if isinstance(names, dict) else ():
        for start in places:
            if name.lower().startswith(start):
                if not isinstance(place, int) or isinstance(place, bool) or place < 0:
                    raise refusal(
                        f"{FILE}: label2id", f"has {place!r} for {name!r}", "Write a number from 0 on."
                    )
                places[start] = place
    return EntailmentPlaces(places["entail"], places["contra"], _has_token_types(config))


def _has_token_types(config: dict[str, Any]) -> bool:
    size, kind = config.get("type_vocab_size"), str(config.get("model_type", "")).lower()
    if isinstance(size, int) and size > 1:
        return True
    return kind in _TYPED or kind.startswith("deberta")
