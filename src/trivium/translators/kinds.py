"""The table of translators: a row each. Adding one is its kind and a row here."""

from trivium.translators.arguments import read_classification, read_features
from trivium.translators.custom import KIND as CUSTOM
from trivium.translators.pictures.classification import FeatureExtractor, ImageClassifier
from trivium.translators.pictures.kind import PictureKind, PictureTask
from trivium.types.fetching import FetchFile
from trivium.types.interfaces import TranslatorKind

PICTURES = (
    PictureTask(
        "image-classification",
        read_classification,
        lambda arguments: arguments.picture,
        lambda arguments: arguments.labels,
        ImageClassifier,
    ),
    PictureTask(
        "image-features",
        read_features,
        lambda arguments: arguments,
        lambda arguments: None,
        lambda arguments, labels: FeatureExtractor(arguments),
    ),
)


def kinds(fetch: FetchFile) -> dict[str, TranslatorKind]:
    """Return the kinds by their names; what a URL names they get by `fetch`."""
    made: tuple[TranslatorKind, ...] = (CUSTOM, *(PictureKind(task, fetch) for task in PICTURES))
    return {kind.name: kind for kind in made}
