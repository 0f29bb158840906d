"""Arguments of translators: DJL's names, defaults and readings; what is wrong is named, with what was expected."""

from collections.abc import Callable, Mapping

import pytest

from trivium.translators import arguments
from trivium.translators.arguments import (
    CrossEncoderArguments,
    EmbeddingArguments,
    LabelSource,
    PictureArguments,
    ShortEdge,
    TokenizerArguments,
)
from trivium.translators.reading import ArgumentFinding
from trivium_worker.pictures import IMAGENET_MEAN, IMAGENET_STD

READERS: Mapping[str, Callable[[Mapping[str, object]], tuple[object, list[ArgumentFinding]]]] = {
    "classification": arguments.read_classification,
    "features": arguments.read_features,
    "detection": arguments.read_detection,
    "yolo": lambda given: arguments.read_detection(given, is_yolo=True),
    "yolo fractions": lambda given: arguments.read_detection(given, has_fractions=True),
    "segmentation": arguments.read_segmentation,
    "question answering": arguments.read_question_answering,
    "text": lambda given: arguments.read_text(given, "text classification"),
    "token classification": arguments.read_token_classification,
    "embedding": arguments.read_embedding,
    "fill mask": arguments.read_fill_mask,
}


@pytest.mark.parametrize("name", READERS)
def test_without_arguments_all_is_as_in_djl_and_nothing_is_wrong(name: str) -> None:
    found, findings = READERS[name]({})
    assert not findings
    assert hash(found)


def test_the_package_of_the_guide_means_what_it_says_without_its_commas() -> None:
    given = {"width": "224,", "height": "224,", "resize": "256", "centerCrop": "true,", "normalize": "true,"}
    found, findings = arguments.read_features(given)
    assert found == PictureArguments(
        resize=(256, 256, "BILINEAR"), center_crop=True, mean=IMAGENET_MEAN, std=IMAGENET_STD
    )
    assert [finding.key for finding in findings] == ["width", "height", "normalize", "centerCrop"]
    assert all(finding.is_notice for finding in findings)
    assert findings[0] == ArgumentFinding(
        "width", "'224,' is read as '224'", "no comma at the end", "Remove the comma.", True
    )


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        ({"width": 64, "height": "32.9"}, "height", 32),
        ({"flag": "grayscale"}, "flag", "GRAYSCALE"),
        ({"pad": "true"}, "pad", 0.0),
        ({"pad": 114}, "pad", 114.0),
        ({"resize": True, "width": 8, "height": 4}, "resize", (8, 4, "BILINEAR")),
        ({"resize": "20, 10, bicubic"}, "resize", (20, 10, "BICUBIC")),
        ({"resize": [20, 10]}, "resize", (20, 10, "BILINEAR")),
        ({"resizeShort": "true", "height": 300}, "resize_short", ShortEdge(300)),
        ({"resizeShort": "20,40,AREA"}, "resize_short", ShortEdge(20, 40, "AREA")),
        ({"resizeShort": "20,-1"}, "resize_short", ShortEdge(20)),
        ({"centerFit": "True"}, "center_fit", True),
        ({"toTensor": "false"}, "to_tensor", False),
        ({"normalize": "0,0,0,1,1,2"}, "std", (1, 1, 2)),
        ({"range": "-1,1"}, "value_range", "-1,1"),
        ({"batchifier": "none"}, "batchifier", "none"),
    ],
)
def test_a_step_of_pictures(given: Mapping[str, object], field: str, value: object) -> None:
    found, findings = arguments.read_features(given)
    assert getattr(found, field) == value
    assert not findings


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("features", {"width": "wide"}, "width=wide; a number from 1 to 16384; Without the line it is 224."),
        ("features", {"width": "nan"}, "width=nan"),
        ("features", {"width": "1e400"}, "width=1e400"),
        ("features", {"width": {"pixels": 3}}, "an object"),
        ("features", {"width": "16384", "height": "16384"}, "at most 64000000 pixels"),
        ("features", {"flag": "COLOUR"}, "Did you mean COLOR?"),
        ("features", {"pad": "grey"}, "a grey level from 0 to 255"),
        ("features", {"resize": "0"}, "an edge, or width,height"),
        ("features", {"resize": "1,2,3,4"}, "an edge, or width,height"),
        ("features", {"resize": "9,9,CUBIC"}, "NEAREST, BILINEAR, AREA, BICUBIC"),
        ("features", {"resizeShort": "99999"}, "An edge is 1 to 16384"),
        ("features", {"normalize": "0.5,0.5"}, "six numbers"),
        ("features", {"normalize": "0,0,0,1,1,0"}, "three deviations that are not 0"),
        ("features", {"normalize": "true", "toTensor": "false"}, "toTensor=true with it"),
        ("features", {"normalize": "true", "flag": "GRAYSCALE"}, "grey has one channel"),
        ("features", {"range": "0,255"}, "0,1 or -1,1"),
        ("classification", {"topK": 0}, "topK=0"),
        ("classification", {"resize": "256"}, "resized image has mismatched target size"),
        ("classification", {"synset": ","}, "class names with commas between"),
        ("detection", {"threshold": "-1"}, "threshold=-1"),
        ("yolo", {"outputType": "DETECT"}, "DJL does not read DETECT either"),
        ("yolo", {"nmsThreshold": 2}, "from 0 to 1"),
        ("question answering", {"tokenizer": "bert-base-cased"}, "none is fetched from a hub"),
        ("question answering", {"truncation": "longest"}, "Did you mean longest_first?"),
        ("question answering", {"maxLength": 0}, "from 1 to"),
        ("token classification", {"aggregation_strategy": "sum"}, "none, simple, first, average, max"),
        ("embedding", {"pooling": "means"}, "Did you mean mean?"),
        ("embedding", {"dense": "linear.safetensors"}, "a model that has this layer itself"),
        ("embedding", {"sparse": "true"}, "sparse ones are not served"),
        ("fill mask", {"topK": "many"}, "topK=many"),
    ],
)
def test_what_is_wrong_is_named(name: str, given: Mapping[str, object], words: str) -> None:
    found, (finding,) = READERS[name](given)
    assert not finding.is_notice
    assert words in "; ".join(finding[1:4])
    assert hash(found)


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        (
            "features",
            {"resizeShrot": "true"},
            "resizeShrot is no argument of image features; ; Did you mean resizeShort?",
        ),
        ("features", {"topK": 5}, "topK is no argument of image features"),
        ("features", {"centerCrop": "yes"}, "'yes' is read as false, as DJL reads it; true or false"),
        ("features", {"toTensor": "ture"}, "Did you mean true?"),
        ("features", {"range": "0,1"}, "divided by 255 already"),
        ("yolo fractions", {"optApplyRatio": "true"}, "fractions with or without it"),
        ("detection", {"nmsThreshold": 0.3}, "no argument of object detection"),
        ("question answering", {"includeTokenType": "True"}, "Did you mean includeTokenTypes?"),
        ("question answering", {"withOverflowingTokens": "true"}, "reaches no model in DJL either"),
    ],
)
def test_what_is_read_all_the_same_is_a_notice(name: str, given: Mapping[str, object], words: str) -> None:
    _, (finding,) = READERS[name](given)
    assert finding.is_notice
    assert words in "; ".join(finding[1:4])


def test_class_names_stand_in_an_argument_a_file_or_at_a_url() -> None:
    labels = [
        arguments.read_classification(given)[0].labels
        for given in (
            {"synset": "cat, dog,"},
            {"synset": ["cat"]},
            {"synsetFileName": "names.txt"},
            {"synsetUrl": "u"},
        )
    ]
    assert labels == [
        LabelSource(("cat", " dog")),
        LabelSource(("cat",)),
        LabelSource(file="names.txt"),
        LabelSource(url="u"),
    ]


def test_a_cross_encoder_is_an_embedding_that_ranks() -> None:
    assert arguments.read_embedding({"reranking": "true", "sigmoid": "false"})[0] == CrossEncoderArguments(
        sigmoid=False
    )
    assert arguments.read_embedding({"pooling": "CLS"})[0] == EmbeddingArguments(pooling="cls")


def test_what_a_tokenizer_is_told() -> None:
    given = {
        "includeTokenTypes": "True",
        "maxLength": "128,",
        "truncation": "false",
        "padding": "MAX_LENGTH",
        "doLowerCase": "true",
        "addSpecialTokens": False,
    }
    found, findings = arguments.read_question_answering(given)
    assert found.text.include_token_types
    assert found.text.tokenizer == TokenizerArguments(
        add_special_tokens=False,
        max_length=128,
        truncation="do_not_truncate",
        padding="max_length",
        lower_case="true",
    )
    assert [finding.key for finding in findings] == ["maxLength"]


def test_a_thousand_unknown_arguments_are_told_in_no_time() -> None:
    given = {f"argument{number}" * 9: "x" for number in range(1000)}
    assert len(arguments.read_features(given)[1]) == 1000
