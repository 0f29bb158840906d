"""TorchServe's own handlers for texts and tensors, and its micro-batches; numbers by hand."""

import importlib
import io
import json
import random
import re
import threading
from typing import Any

import pytest
from tests.harness.torchserve_child import TorchServeChildHarness, body, failures, stage

__all__ = ["stage"]

LABELS = {"0": "World", "1": "Sports"}
NET = """
import torch

class Net(torch.nn.Module):
    def forward(self, numbers, offsets):
        assert offsets.tolist() == [0]
        total = numbers.sum().float()
        return torch.stack([total * 0.01, total * 0])[None]
"""
DOUBLES = """
import torch

class Net(torch.nn.Module):
    def forward(self, x):
        return x * 2
"""
PREPARED = [
    ("Don't <b>stop</b>&amp;now", ["do", "not", "stopnow"]),
    ("I'D've gone, y'all: caf\u00e9 na\u00efve!", ["i", "wouldve", "gone", "you", "all", "cafe", "naive"]),
    ("It's 5 o'clock (p.m.)", ["it", "is", "5", "of", "the", "clock", "pm"]),
    ("", []),
]


def text_classifier(stage: TorchServeChildHarness, vocabulary: Any, config: Any = None) -> Any:
    import torch

    (stage.root / "net.py").write_text(NET)
    (stage.root / "index_to_name.json").write_text(json.dumps(LABELS))
    if vocabulary is not None:
        torch.save(vocabulary, stage.root / "source_vocab.pt")
    manifest = {"model": {"modelName": "m", "modelFile": "net.py"}}
    return stage.load(entry="text_classifier", manifest=manifest, config=config or {})


class Anything(dict[str, int]):
    """A vocabulary that has every word, and counts those that it was asked for."""

    def __missing__(self, word: str) -> int:
        return len(word)


def test_a_text_becomes_the_numbers_of_its_words_and_pairs_and_each_class_is_answered(
    stage: TorchServeChildHarness,
) -> None:
    adapter = text_classifier(stage, {"do": 1, "not": 2, "do not": 30})
    outcomes = adapter.run([stage.item(b"Don't!")])
    answer = json.loads(body(outcomes[0]))
    assert list(answer) == ["World", "Sports"]
    assert answer["World"] == pytest.approx(1 / (1 + 2.718281828**-0.33), abs=1e-6)
    assert sum(answer.values()) == pytest.approx(1)


@pytest.mark.parametrize(("text", "words"), PREPARED)
def test_how_a_text_is_cleaned(stage: TorchServeChildHarness, text: str, words: list[str]) -> None:
    handler = text_classifier(stage, {}).entry.__self__
    handler.source_vocab = Anything()
    numbers, found = handler.preprocess([{"body": text.encode()}] if text else [{"body": "<p>"}])
    assert found == words
    assert len(numbers) == max(2 * len(words) - 1, 0)


@pytest.mark.parametrize("seed", range(50))
def test_markup_goes_as_one_expression_would_take_it(stage: TorchServeChildHarness, seed: int) -> None:
    utilities = importlib.import_module("ts.handler_utils.text_utils")
    dice = random.Random(seed)
    text = "".join(dice.choices(["<", ">", "&amp;", "&#12;", "&", ";", "a", "\n", " "], k=40))
    whole = re.compile("<.*?>|&([a-z0-9]+|#[0-9]{1,6}|#x[0-9a-f]{1,6});")
    assert utilities.without_markup(text) == whole.sub("", text)


def test_tags_that_do_not_end_take_no_time(stage: TorchServeChildHarness) -> None:
    """A second for a megabyte of them would be an hour by the expression alone: it looks for an end from each."""
    utilities = importlib.import_module("ts.handler_utils.text_utils")
    text = "<" * 2**20
    assert utilities.without_markup(text) == text


def test_a_word_that_the_vocabulary_lacks_fails_by_name(stage: TorchServeChildHarness) -> None:
    (found,) = failures(text_classifier(stage, {"a": 1}).run([stage.item(b"b")]))
    assert found[1] == "Prediction failed: KeyError: 'b'"


def test_a_vocabulary_runs_no_code_unless_it_may(stage: TorchServeChildHarness) -> None:
    from collections import Counter

    with pytest.raises(Exception, match=r"source_vocab\.pt is no plain dict .*weights_only: false"):
        text_classifier(stage, Vocabulary())
    assert Counter(
        text_classifier(stage, Vocabulary(), {"handler": {"weights_only": False}}).entry.__self__.source_vocab
    )


class Vocabulary(dict[str, int]):
    """A class of somebody's own, which a pickle names."""

    def __init__(self) -> None:
        super().__init__(a=1)


def test_a_missing_vocabulary_is_told(stage: TorchServeChildHarness) -> None:
    with pytest.raises(Exception, match=r"source_vocab\.pt is not there"):
        text_classifier(stage, None)


def test_explanations_need_captum_and_say_so(stage: TorchServeChildHarness) -> None:
    handler = text_classifier(stage, {"a": 1}).entry.__self__
    if handler.lig is None:
        with pytest.raises(RuntimeError, match="pip install captum"):
            handler.get_insights(handler.preprocess([{"body": b"a"}]), None)


def test_tensors_that_torch_has_written(stage: TorchServeChildHarness) -> None:
    import torch

    (stage.root / "net.py").write_text(DOUBLES)
    adapter = stage.load(
        entry="densenet_handler", manifest={"model": {"modelName": "m", "modelFile": "net.py"}}
    )
    handler = adapter.entry.__self__
    saved = io.BytesIO()
    torch.save(torch.tensor([1.0, 2.0]), saved)
    (answer,) = handler.handle([{"body": bytearray(saved.getvalue())}], handler.context or stage_context())
    assert answer.tolist() == [[2.0, 4.0]]


def stage_context() -> Any:
    class Metrics:
        def add_time(self, *given: Any) -> None:
            """It is a test."""

    class Context:
        metrics = Metrics()

    return Context()


class Steps:
    """A handler of three steps; the second one waits until two pieces are in it."""

    def __init__(self, waits: bool = False) -> None:
        self.both = threading.Barrier(2, timeout=60) if waits else None
        self.seen: list[Any] = []

    def preprocess(self, data: list[int]) -> list[int]:
        return [one + 1 for one in data]

    def inference(self, data: list[int]) -> list[int]:
        if self.both is not None:
            self.both.wait()
        if 100 in data:
            raise ValueError("a hundred")
        return [one * 10 for one in data]

    def postprocess(self, data: list[int]) -> list[int]:
        self.seen.append(self.batching.get_micro_batch_idx())
        return data

    batching: Any = None


def test_pieces_of_a_batch_run_side_by_side_and_come_back_in_order(stage: TorchServeChildHarness) -> None:
    module = importlib.import_module("ts.handler_utils.micro_batching")
    steps = Steps(waits=True)
    steps.batching = module.MicroBatching(steps, micro_batch_size=2, parallelism={"inference": 2})
    assert steps.batching.handle([0, 1, 2, 3]) == [10, 20, 30, 40]
    assert sorted(steps.seen) == [0, 1]
    steps.batching.shutdown()


def test_what_a_step_raises_is_raised_to_who_waits_and_the_next_batch_is_answered(
    stage: TorchServeChildHarness,
) -> None:
    module = importlib.import_module("ts.handler_utils.micro_batching")
    steps = Steps()
    steps.batching = module.MicroBatching(steps)
    with pytest.raises(ValueError, match="a hundred"):
        steps.batching.handle([1, 99, 2])
    assert steps.batching.handle([1]) == [20]
    steps.batching.parallelism = {"preprocess": 3}
    assert steps.batching.parallelism == {"preprocess": 3, "inference": 1, "postprocess": 1}
    for wrong in ({"other": 1}, {"inference": 0}, {"inference": True}):
        with pytest.raises(ValueError, match="at least 1"):
            steps.batching.parallelism = wrong
    steps.batching.shutdown()


def test_the_texts_of_a_batch_piece_by_piece(stage: TorchServeChildHarness) -> None:
    import torch

    class Tokenizer:
        def decode(self, tokens: Any, **named: Any) -> str:
            return "".join(f"{token}\n" for token in torch.as_tensor(tokens).reshape(-1).tolist())

    module = importlib.import_module("ts.handler_utils.hf_batch_streamer")
    streamer = module.TextIteratorStreamerBatch(Tokenizer(), 2, skip_prompt=True, timeout=60)
    streamer.put(torch.tensor([[1, 2], [3, 4]]))  # the prompts
    for tokens in ([5, 6], [7, 8]):
        streamer.put(torch.tensor(tokens))
    streamer.end()
    pieces = (
        [{"text": "5\n"}, {"text": "6\n"}],
        [{"text": "7\n"}, {"text": "8\n"}],
        [{"text": ""}, {"text": ""}],
    )
    assert list(streamer) == list(map(list, pieces))
    with pytest.raises(ValueError, match="made for 2 texts"):
        streamer.put(torch.tensor([1]))


def test_an_envelope_of_ones_own(stage: TorchServeChildHarness) -> None:
    base = importlib.import_module("ts.torch_handler.request_envelope.base")

    class Own(base.BaseEnvelope):  # type: ignore[misc,name-defined]
        def parse_input(self, data: Any) -> Any:
            return [row["x"] for row in data]

        def format_output(self, data: Any) -> Any:
            return [{"y": one} for one in data]

    own = Own(lambda data, context: [one + 1 for one in data])
    assert own.handle([{"x": 1}], None) == [{"y": 2}]
    assert own.handle([], None) == []
