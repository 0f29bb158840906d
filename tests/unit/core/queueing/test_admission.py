"""Who is let in, by tables: every refusal with its sentence, and what a request is made of."""

from pathlib import Path

import numpy as np
import pytest

from trivium.core.queueing.admission import PriorityRules, drain_time, queue_full
from trivium.core.queueing.input_rules import InputRules
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer, WantedOutput
from trivium.types.payload import Tensor, Tensors
from trivium.types.spec import Batching, Dynamic, ModelSpec, QueuePolicy, TensorSpec

X = TensorSpec("x", DataType.FP32, (2,))
TEXT = TensorSpec("text", DataType.BYTES, (-1,), optional=True)
Y = TensorSpec("y", DataType.FP32, (2,))
BATCHED = Batching(batch_axis=True, max_rows=4, merge=True)


def rules(inputs=(X,), batching=BATCHED):
    return InputRules(ModelSpec("m", "1", Path("m"), "identity", "", inputs, outputs=(Y,), batching=batching))


def tensor(name, *shape, datatype=DataType.FP32):
    return Tensor(name, datatype, shape, np.zeros(shape, datatype.dtype))


def ask(*tensors, outputs=()):
    return Infer(model="m", payload=Tensors(tensors), outputs=tuple(map(WantedOutput, outputs)))


ADMITTED = {
    "one row": (rules(), ask(tensor("x", 1, 2)), 1),
    "all the rows that go": (rules(), ask(tensor("x", 4, 2)), 4),
    "no batch axis is one row": (rules(batching=Batching()), ask(tensor("x", 2)), 1),
    "an optional input may lack": (rules((X, TEXT)), ask(tensor("x", 3, 2)), 3),
    "or be there, in any order": (
        rules((X, TEXT)),
        ask(tensor("text", 2, 7, datatype=DataType.BYTES), tensor("x", 2, 2)),
        2,
    ),
    "every input optional, and none given": (rules((TEXT,)), ask(), 1),
    "a model without inputs": (rules((), Batching()), ask(), 1),
    "wanted outputs that there are": (rules(), ask(tensor("x", 1, 2), outputs=["y", "y"]), 1),
    "a dim of any size may be 0": (rules((TEXT,)), ask(tensor("text", 1, 0, datatype=DataType.BYTES)), 1),
    "a scalar": (rules((TensorSpec("x", DataType.FP32, ()),), Batching()), ask(tensor("x")), 1),
    "a batch of scalars": (rules((TensorSpec("x", DataType.FP32, ()),)), ask(tensor("x", 3)), 3),
}


@pytest.mark.parametrize("name", ADMITTED)
def test_admitted(name):
    there, infer, rows = ADMITTED[name]
    assert there.admit(infer, infer.payload) == rows


WHOLE = rules(batching=Batching())
REFUSED = {
    "an unknown input": (
        rules(),
        ask(tensor("z", 1, 2)),
        "Model 'm' has no input 'z'; it takes 'x' FP32[rows,2].",
    ),
    "a wrong datatype": (
        rules(),
        ask(tensor("x", 1, 2, datatype=DataType.INT8)),
        "Model 'm' got datatype INT8 for input 'x'; it takes FP32.",
    ),
    "BF16 is not UINT16": (
        rules((TensorSpec("x", DataType.BF16, (2,)),)),
        ask(tensor("x", 1, 2, datatype=DataType.UINT16)),
        "Model 'm' got datatype UINT16 for input 'x'; it takes BF16.",
    ),
    "a wrong shape": (
        rules(),
        ask(tensor("x", 1, 3)),
        "Model 'm' got shape [1,3] for input 'x'; it takes [rows,2], where the first dimension is the batch; "
        "-1 stands for any size.",
    ),
    "a missing batch dimension": (
        rules(),
        ask(tensor("x", 2)),
        "got shape [2] for input 'x'; it takes [rows,2]",
    ),
    "a scalar where there is a batch": (rules(), ask(tensor("x")), "got shape [] for input 'x'"),
    "a wrong shape without batch": (
        WHOLE,
        ask(tensor("x", 1, 2)),
        "Model 'm' got shape [1,2] for input 'x'; it takes [2]; -1 stands for any size.",
    ),
    "no rows": (rules(), ask(tensor("x", 0, 2)), "Model 'm' got an empty batch; a request has 1 to 4 rows."),
    "too many rows": (
        rules(),
        ask(tensor("x", 5, 2)),
        "Model 'm' got a batch of 5 rows; it takes at most 4: send it in several requests.",
    ),
    "rows that differ": (
        rules((X, TEXT)),
        ask(tensor("x", 2, 2), tensor("text", 3, 1, datatype=DataType.BYTES)),
        "Model 'm' got 2 rows in 'x' and 3 in 'text'; the first dimension of every input is the batch and must be "
        "the same.",
    ),
    "an input twice": (
        rules(),
        ask(tensor("x", 1, 2), tensor("x", 1, 2)),
        "Model 'm' got input 'x' more than once; each input is given once.",
    ),
    "a missing input": (
        rules((X, TEXT)),
        ask(tensor("text", 1, 1, datatype=DataType.BYTES)),
        "Model 'm' got no input 'x'; it takes 'x' FP32[rows,2], 'text' BYTES[rows,-1] (optional).",
    ),
    "no inputs at all": (rules(), ask(), "Model 'm' got no input 'x'; it takes 'x' FP32[rows,2]."),
    "an unknown output": (
        rules(),
        ask(tensor("x", 1, 2), outputs=["y", "z"]),
        "Model 'm' has no output 'z'; its outputs are 'y'.",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    there, infer, sentence = REFUSED[name]
    with pytest.raises(ServeError) as caught:
        there.admit(infer, infer.payload)
    assert caught.value.code is Code.INVALID
    assert sentence in caught.value.message


@pytest.mark.parametrize(
    ("inputs", "batching", "needs"),
    [
        ((X,), BATCHED, False),
        ((X,), Batching(True, 4, merge=False), False),
        ((TEXT,), Batching(True, 4, merge=False), False),
        ((TensorSpec("x", DataType.FP32, (-1,)),), BATCHED, True),
        ((X, TensorSpec("o", DataType.FP32, (1,), optional=True)), BATCHED, True),
    ],
)
def test_a_key_is_needed_only_where_shapes_can_differ(inputs, batching, needs):
    assert rules(inputs, batching).needs_key is needs


def test_the_key_is_names_and_shapes_without_rows_in_any_order():
    ragged = rules(
        (TensorSpec("a", DataType.FP32, (-1,)), TensorSpec("b", DataType.FP32, (-1,), optional=True))
    )
    alike = [ask(tensor("a", 1, 3), tensor("b", 1, 5)), ask(tensor("b", 2, 5), tensor("a", 2, 3))]
    others = [ask(tensor("a", 1, 3)), ask(tensor("a", 1, 5), tensor("b", 1, 3)), ask(tensor("a", 1, 4))]
    keys = [ragged.shape_key(infer) for infer in [*alike, *others]]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 4


PATIENT = QueuePolicy(timeout=5.0, may_shorten=True)
STRICT = QueuePolicy(timeout=2.0)


def test_levels():
    levels = PriorityRules(
        Dynamic(levels=3, default_level=2, default_policy=STRICT, level_policies={3: PATIENT})
    )
    assert [levels.level(priority) for priority in (0, 1, 2, 3, 4, -1)] == [2, 1, 2, 3, 2, 2]
    assert levels.policies == (STRICT, STRICT, PATIENT)
    assert not levels.are_plain


@pytest.mark.parametrize(
    ("policy", "wish", "seconds"),
    [
        (PATIENT, None, 5.0),
        (PATIENT, 1.0, 1.0),
        (PATIENT, 9.0, 5.0),
        (PATIENT, 0.0, 5.0),
        (PATIENT, -1.0, 5.0),
        (STRICT, 1.0, 2.0),
        (QueuePolicy(may_shorten=True), 1.0, None),
    ],
)
def test_a_request_may_only_shorten_its_time(policy, wish, seconds):
    assert PriorityRules(Dynamic(default_policy=policy)).timeout(1, wish) == seconds


@pytest.mark.parametrize(
    ("scheduling", "plain"),
    [
        (Dynamic(), True),
        (Dynamic(max_delay=1.0, preferred_rows=(2,)), True),
        (Dynamic(levels=2), False),
        (Dynamic(default_policy=STRICT), False),
        (Dynamic(default_policy=QueuePolicy(max_items=1)), False),
    ],
)
def test_plain_is_when_there_is_nothing_to_decide(scheduling, plain):
    assert PriorityRules(scheduling).are_plain is plain


@pytest.mark.parametrize(("seconds", "said"), [(0.0, "in 1 s"), (1.2, "in 2 s"), (30.0, "in 30 s")])
def test_a_full_queue_says_when_to_come_again(seconds, said):
    error = queue_full("m", 7, seconds)
    assert (error.code, error.retry_after) == (Code.QUEUE_FULL, seconds)
    assert "7 requests are waiting" in error.message
    assert said in error.message


@pytest.mark.parametrize(
    ("rows", "run", "per_run", "instances", "seconds"),
    [(0, 1.0, 1.0, 1, 0.0), (8, 0.5, 4.0, 2, 0.5), (8, 0.5, 0.0, 0, 4.0)],
)
def test_drain_time(rows, run, per_run, instances, seconds):
    assert drain_time(rows, run, per_run, instances) == seconds
