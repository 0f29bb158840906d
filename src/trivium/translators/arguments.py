"""The arguments of the translators, read and checked: names, defaults and order are those of DJL.

Source: spec sheet `djl`, section 10. A mapping holds the arguments alone, as texts of `serving.properties` or as values
of JSON. Every reader gives its arguments, usable whatever is wrong with them, and all findings. Pure.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from trivium.translators.reading import ArgumentFinding, ArgumentReader, number_in
from trivium_worker.pictures import IMAGENET_MEAN, IMAGENET_STD, INTERPOLATIONS, MOST_PIXELS

LONGEST_EDGE = 16384
MOST_TOKENS = 2**17
MOST_PADDING = 2**12
MOST_LABELS = 1_000_000

BATCHIFIERS = ("stack", "padding", "none")
OUTPUT_TYPES = ("AUTO", "BOX", "DETECT")
POOLINGS = ("mean", "max", "cls", "mean_sqrt_len", "weightedmean", "lasttoken")
AGGREGATIONS = ("none", "simple", "first", "average", "max")
TRUNCATIONS = ("longest_first", "only_first", "only_second", "do_not_truncate")
PADDINGS = ("longest", "max_length", "do_not_pad")

_PARTS = re.compile(r"\s*,\s*")
_NOT_LOADED = ("dense", "denseActivation", "layerNorm")


@dataclass(frozen=True, slots=True)
class ShortEdge:
    """A resize by edges: the shorter becomes `short`, but the longer at most `long`, if that is not 0."""

    short: int
    long: int = 0
    interpolation: str = "BILINEAR"


@dataclass(frozen=True, slots=True)
class PictureArguments:
    """The steps from a picture to a tensor, in this order: pad, resize, resize_short, crop, fit, tensor, mean, range.

    `first_resize` goes before all others. `value_range` is `0,1`, `-1,1` or empty.
    """

    width: int = 224
    height: int = 224
    flag: str = "COLOR"
    first_resize: ShortEdge | None = None
    pad: float | None = None
    resize: tuple[int, int, str] | None = None
    resize_short: ShortEdge | None = None
    center_crop: bool = False
    center_fit: bool = False
    to_tensor: bool = True
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    value_range: str = ""
    batchifier: str = "stack"


@dataclass(frozen=True, slots=True)
class LabelSource:
    """The place of the class names: written here, at a URL, or in a file of the model's folder."""

    labels: tuple[str, ...] | None = None
    url: str = ""
    file: str = "synset.txt"


@dataclass(frozen=True, slots=True)
class ClassificationArguments:
    """Arguments of image classification."""

    picture: PictureArguments
    labels: LabelSource
    apply_softmax: bool = False
    top_k: int = 5


@dataclass(frozen=True, slots=True)
class DetectionArguments:
    """Arguments of object detection; the last three are YOLO's alone.

    `apply_ratio` makes fractions of width and height of a box, `remove_padding` takes off what `centerFit` has added.
    """

    picture: PictureArguments
    labels: LabelSource
    threshold: float = 0.2
    apply_ratio: bool = False
    remove_padding: bool = False
    nms_threshold: float = 0.4
    output_type: str = "AUTO"
    max_boxes: int = 8400


@dataclass(frozen=True, slots=True)
class SegmentationArguments:
    """Arguments of semantic segmentation."""

    picture: PictureArguments
    labels: LabelSource


@dataclass(frozen=True, slots=True)
class TokenizerArguments:
    """The way that texts become tokens. A None is what the tokenizer's own files say.

    `lower_case` is empty for no, else `true` or a language; `path` and `config_path` are files of the model's folder.
    """

    add_special_tokens: bool | None = None
    model_max_length: int | None = None
    max_length: int | None = None
    truncation: str = "longest_first"
    padding: str = "longest"
    stride: int | None = None
    pad_to_multiple_of: int | None = None
    lower_case: str = ""
    strip_accents: bool | None = None
    add_prefix_space: bool | None = None
    path: str = ""
    config_path: str = ""


@dataclass(frozen=True, slots=True)
class TextArguments:
    """Arguments of every translator of texts."""

    tokenizer: TokenizerArguments = TokenizerArguments()
    include_token_types: bool = False
    int32: bool = False
    batchifier: str = "stack"


@dataclass(frozen=True, slots=True)
class QuestionAnsweringArguments:
    """Arguments of question answering; `detail` asks for score and place of an answer."""

    text: TextArguments = TextArguments()
    detail: bool = False


@dataclass(frozen=True, slots=True)
class TokenClassificationArguments:
    """Arguments of token classification."""

    text: TextArguments = TextArguments()
    softmax: bool = True
    aggregation: str = "none"


@dataclass(frozen=True, slots=True)
class EmbeddingArguments:
    """Arguments of text embedding."""

    text: TextArguments = TextArguments()
    pooling: str = "mean"
    normalize: bool = True


@dataclass(frozen=True, slots=True)
class CrossEncoderArguments:
    """Arguments of a cross-encoder."""

    text: TextArguments = TextArguments()
    sigmoid: bool = True


@dataclass(frozen=True, slots=True)
class FillMaskArguments:
    """Arguments of filling a mask."""

    text: TextArguments = TextArguments()
    mask_token: str = "[MASK]"
    top_k: int = 5


Findings = list[ArgumentFinding]


def read_classification(arguments: Mapping[str, object]) -> tuple[ClassificationArguments, Findings]:
    """Read what `ImageClassificationTranslatorFactory` takes."""
    read = ArgumentReader(arguments)
    picture = _picture(read)
    _check_size(read, picture)
    apply_softmax, top_k = read.switch("applySoftmax"), read.integer("topK", 5, 1, MOST_LABELS)
    return ClassificationArguments(picture, _labels(read), apply_softmax, top_k), read.finish(
        "image classification"
    )


def read_features(arguments: Mapping[str, object]) -> tuple[PictureArguments, Findings]:
    """Read what `ImageFeatureExtractorFactory` takes."""
    read = ArgumentReader(arguments)
    return _picture(read), read.finish("image features")


def read_detection(
    arguments: Mapping[str, object], is_yolo: bool = False, has_fractions: bool = False
) -> tuple[DetectionArguments, Findings]:
    """Read what the detection factories take.

    `is_yolo` for `YoloV5` and `YoloV8`, which take more; `has_fractions` for `Yolo`, whose boxes are fractions anyhow.
    """
    read = ArgumentReader(arguments)
    picture = _picture(read)
    _check_size(read, picture)
    spellings = [read.switch(key) for key in ("applyRatio", "optApplyRatio")]
    found = DetectionArguments(
        picture,
        _labels(read),
        threshold=read.number("threshold", 0.2, 0, 1e9),
        apply_ratio=any(spellings),
        remove_padding=picture.center_fit,
        nms_threshold=read.number("nmsThreshold", 0.4, 0, 1) if is_yolo else 0.4,
        output_type=read.word("outputType", OUTPUT_TYPES, "AUTO") if is_yolo else "AUTO",
        max_boxes=read.integer("maxBox", 8400) if is_yolo else 8400,
    )
    if has_fractions and found.apply_ratio:
        read.notice(
            "applyRatio", "applyRatio: boxes are fractions with or without it", "", "Remove the line."
        )
    if found.output_type == "DETECT":
        hint = "Export the model with its detection layer, so that each row is a box."
        read.fault("outputType", "DETECT", "AUTO or BOX: DJL does not read DETECT either", hint)
    return found, read.finish("object detection")


def read_segmentation(arguments: Mapping[str, object]) -> tuple[SegmentationArguments, Findings]:
    """Read what `SemanticSegmentationTranslatorFactory` takes."""
    read = ArgumentReader(arguments)
    short = read.integer("shortEdge", 600, 1, LONGEST_EDGE)
    long = read.integer("maxEdge", 1000, 1, LONGEST_EDGE)
    picture = _picture(read, ShortEdge(short, long))
    _check_size(read, picture)
    return SegmentationArguments(picture, _labels(read)), read.finish("semantic segmentation")


def read_question_answering(
    arguments: Mapping[str, object],
) -> tuple[QuestionAnsweringArguments, Findings]:
    """Read what `QuestionAnsweringTranslatorFactory` takes."""
    read = ArgumentReader(arguments)
    found = QuestionAnsweringArguments(_text(read), read.switch("detail"))
    return found, read.finish("question answering")


def read_text(arguments: Mapping[str, object], translator: str) -> tuple[TextArguments, Findings]:
    """Read what text classification and zero-shot classification take."""
    read = ArgumentReader(arguments)
    return _text(read), read.finish(translator)


def read_token_classification(
    arguments: Mapping[str, object],
) -> tuple[TokenClassificationArguments, Findings]:
    """Read what `TokenClassificationTranslatorFactory` takes."""
    read = ArgumentReader(arguments)
    aggregation = read.word("aggregation_strategy", AGGREGATIONS, "none")
    found = TokenClassificationArguments(_text(read), read.switch("softmax", True), aggregation)
    return found, read.finish("token classification")


def read_embedding(
    arguments: Mapping[str, object],
) -> tuple[EmbeddingArguments | CrossEncoderArguments, Findings]:
    """Read what `TextEmbeddingTranslatorFactory` takes; with `reranking` it is a cross-encoder."""
    read = ArgumentReader(arguments)
    text = _text(read)
    if read.switch("reranking"):
        return CrossEncoderArguments(text, read.switch("sigmoid", True)), read.finish("a cross-encoder")
    for key in _NOT_LOADED:
        if value := read.text(key):
            hint = "Export the model with this layer in it, and remove the line."
            read.fault(key, value, "a model that has this layer itself", hint)
    if read.switch("sparse"):
        hint = "Remove the line for the dense vectors, or serve the model by a Python handler."
        read.fault("sparse", "true", "dense vectors: sparse ones are not served", hint)
    pooling = read.word("pooling", POOLINGS, "mean")
    return EmbeddingArguments(text, pooling, read.switch("normalize", True)), read.finish("text embedding")


def read_fill_mask(arguments: Mapping[str, object]) -> tuple[FillMaskArguments, Findings]:
    """Read what `FillMaskTranslatorFactory` takes."""
    read = ArgumentReader(arguments)
    text = _text(read)
    mask, top_k = read.text("maskToken", "[MASK]"), read.integer("topK", 5, 1, MOST_LABELS)
    return FillMaskArguments(text, mask, top_k), read.finish("fill mask")


def _picture(read: ArgumentReader, first: ShortEdge | None = None) -> PictureArguments:
    width, height = (read.integer(key, 224, 1, LONGEST_EDGE) for key in ("width", "height"))
    if width * height > MOST_PIXELS:
        read.fault(
            "width", f"{width} x {height}", f"at most {MOST_PIXELS} pixels", "Make one of them smaller."
        )
        width = height = 224
    flag = read.word("flag", ("COLOR", "GRAYSCALE"), "COLOR")
    to_tensor = read.switch("toTensor", True)
    mean, std = _mean_and_deviation(read, flag, to_tensor)
    value_range = read.text("range")
    if value_range and value_range not in ("0,1", "-1,1"):
        read.fault("range", value_range, "0,1 or -1,1", "Remove the line to leave the values as they are.")
        value_range = ""
    if value_range == "0,1" and to_tensor:
        found = "range divides by 255 what toTensor has divided by 255 already"
        read.notice("range", found, "one of the two", "Remove range, or write toTensor=false.")
    return PictureArguments(
        width=width,
        height=height,
        flag=flag,
        first_resize=first,
        pad=_pad(read),
        resize=_resize(read, width, height),
        resize_short=_resize_short(read, max(width, height)),
        center_crop=read.switch("centerCrop"),
        center_fit=read.switch("centerFit"),
        to_tensor=to_tensor,
        mean=mean,
        std=std,
        value_range=value_range,
        batchifier=read.word("batchifier", BATCHIFIERS, "stack"),
    )


def _pad(read: ArgumentReader) -> float | None:
    text = read.without_comma("pad", read.text("pad", "false"))
    if text.lower() in ("true", "false"):
        return 0.0 if text.lower() == "true" else None
    if (value := number_in(text)) is None or not 0 <= value <= 255:
        read.fault("pad", text, "true, false or a grey level from 0 to 255", "true stands for 0, black.")
        return None
    return value


def _resize(read: ArgumentReader, width: int, height: int) -> tuple[int, int, str] | None:
    found = _edges(read, "resize", "true, false, an edge, or width,height and an interpolation")
    if found is None:
        return None
    if found is True:
        return width, height, "BILINEAR"
    numbers, interpolation = found
    return numbers[0], numbers[-1], interpolation


def _resize_short(read: ArgumentReader, edge: int) -> ShortEdge | None:
    found = _edges(read, "resizeShort", "true, false, an edge, or short,long and an interpolation")
    if found is None:
        return None
    if found is True:
        return ShortEdge(edge)
    (short, *long), interpolation = found
    return ShortEdge(short, long[0] if long else 0, interpolation)


def _edges(read: ArgumentReader, key: str, expected: str) -> Literal[True] | tuple[list[int], str] | None:
    """Read `true`, `false`, or one or two edges and an interpolation. A long edge below 1 stands for none."""
    text = read.without_comma(key, read.text(key, "false"))
    if text.lower() in ("true", "false"):
        return True if text.lower() == "true" else None
    parts = _PARTS.split(text)
    numbers = [number_in(part) for part in parts[:2]]
    edges = [int(number) for number in numbers if number is not None and 1 <= number <= LONGEST_EDGE]
    interpolation = parts[2].upper() if len(parts) > 2 else "BILINEAR"
    if key == "resizeShort" and len(numbers) == 2 and numbers[1] is not None and numbers[1] < 1:
        numbers.pop()
    if len(parts) > 3 or len(edges) != len(numbers) or interpolation not in INTERPOLATIONS:
        hint = f"An edge is 1 to {LONGEST_EDGE}; interpolations are {', '.join(INTERPOLATIONS)}."
        read.fault(key, text, expected, hint)
        return None
    return edges, interpolation


def _mean_and_deviation(
    read: ArgumentReader, flag: str, to_tensor: bool
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    text = read.without_comma("normalize", read.text("normalize", "false"))
    if text.lower() == "false":
        return (), ()
    numbers = [*IMAGENET_MEAN, *IMAGENET_STD]
    if text.lower() != "true":
        numbers = [number for part in _PARTS.split(text) if (number := number_in(part)) is not None]
        if len(numbers) != 6 or 0 in numbers[3:]:
            expected = "true, false or six numbers: three means and three deviations that are not 0"
            read.fault("normalize", text, expected, "true stands for those of ImageNet.")
            return (), ()
    if not to_tensor:
        hint = "Remove one of the two: channels come first only after toTensor."
        read.fault("normalize", text, "toTensor=true with it", hint)
        return (), ()
    if flag == "GRAYSCALE":
        hint = "Remove normalize, or write flag=COLOR."
        read.fault("normalize", text, "flag=COLOR with it: grey has one channel", hint)
        return (), ()
    return tuple(numbers[:3]), tuple(numbers[3:])


def _check_size(read: ArgumentReader, picture: PictureArguments) -> None:
    """Note, in DJL's words, a resize to another size than the model's where nothing cuts it afterwards."""
    target = (picture.width, picture.height)
    if not picture.resize or picture.resize[:2] == target or picture.center_crop or picture.center_fit:
        return
    width, height, _ = picture.resize
    expected = f"width={target[0]} and height={target[1]}: resized image has mismatched target size"
    hint = "Write resize=true, set width and height, or add centerCrop=true."
    read.fault("resize", f"{width},{height}", expected, hint)


def _labels(read: ArgumentReader) -> LabelSource:
    given = read.is_given("synset")
    labels = tuple(read.text("synset").rstrip(",").split(",")) if given else None
    if labels == ("",):
        read.fault("synset", "", "class names with commas between", "Remove the line for synset.txt.")
        labels = None
    return LabelSource(labels, read.text("synsetUrl"), read.text("synsetFileName", "synset.txt"))


def _text(read: ArgumentReader) -> TextArguments:
    return TextArguments(
        tokenizer=_tokenizer(read),
        include_token_types=read.switch("includeTokenTypes"),
        int32=read.switch("int32"),
        batchifier=read.word("batchifier", BATCHIFIERS, "stack"),
    )


def _tokenizer(read: ArgumentReader) -> TokenizerArguments:
    if name := read.text("tokenizer"):
        hint = "Put the model's tokenizer.json into its folder, and remove the line."
        read.fault("tokenizer", name, "a file of the model: none is fetched from a hub", hint)
    if read.switch("withOverflowingTokens"):
        found = (
            "withOverflowingTokens: what is cut off a text that is too long reaches no model in DJL either"
        )
        read.notice("withOverflowingTokens", found, "", "Remove the line; maxLength says what is kept.")
    lower = read.without_comma("doLowerCase", read.text("doLowerCase", "false"))
    return TokenizerArguments(
        add_special_tokens=_maybe(read, "addSpecialTokens"),
        model_max_length=_maybe_integer(read, "modelMaxLength", 1),
        max_length=_maybe_integer(read, "maxLength", 1),
        truncation=_strategy(read, "truncation", TRUNCATIONS),
        padding=_strategy(read, "padding", PADDINGS),
        stride=_maybe_integer(read, "stride", 0),
        pad_to_multiple_of=_maybe_integer(read, "padToMultipleOf", 0, MOST_PADDING),
        lower_case="" if lower.lower() == "false" else lower.lower(),
        strip_accents=_maybe(read, "stripAccents"),
        add_prefix_space=_maybe(read, "addPrefixSpace"),
        path=read.text("tokenizerPath"),
        config_path=read.text("tokenizerConfigPath"),
    )


def _maybe(read: ArgumentReader, key: str) -> bool | None:
    return read.switch(key) if read.is_given(key) else None


def _maybe_integer(read: ArgumentReader, key: str, least: int, most: int = MOST_TOKENS) -> int | None:
    return read.integer(key, least, least, most) if read.is_given(key) else None


def _strategy(read: ArgumentReader, key: str, words: tuple[str, ...]) -> str:
    """Read one of some words; `true` stands for the first of them and `false` for the last."""
    text = read.without_comma(key, read.text(key, "true")).lower()
    switch = {"true": words[0], "false": words[-1]}
    return switch[text] if text in switch else read.word(key, words, words[0])
