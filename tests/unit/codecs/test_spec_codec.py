"""Whole specs as JSON values and back, with fields generated from the classes themselves."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trivium.codecs.spec_codec import decode, encode
from trivium.types.batch_shapes import BatchShapes
from trivium.types.findings import Finding
from trivium.types.metrics import ModelMetrics
from trivium.types.schedules import Graph, Sequence, State, Step, Unannounced
from trivium.types.spec import (
    All,
    Batching,
    Dynamic,
    Foreign,
    Handler,
    InstanceGroup,
    Latest,
    Limits,
    ModelSpec,
    Origin,
    QueuePolicy,
    Specific,
    TensorSpec,
)
from trivium.types.warmups import Warmup, WarmupInput

TEXT = st.text(max_size=4)
TEXTS = st.dictionaries(TEXT, TEXT, max_size=2)
PATHS = TEXT.map(Path)
SECONDS = st.floats(allow_nan=False)
VALUES = st.recursive(
    st.none() | st.booleans() | TEXT | SECONDS, lambda one: st.lists(one, max_size=2), max_leaves=3
)


def several(of: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(of, max_size=2).map(tuple)


MADE_UP = st.builds(WarmupInput, path=st.none() | PATHS)
POLICIES = st.builds(QueuePolicy, timeout=st.none() | SECONDS)
LEVELS: st.SearchStrategy[Mapping[int, QueuePolicy]] = st.dictionaries(
    st.integers(1, 9), POLICIES, max_size=2
)
SCHEDULING = st.one_of(
    st.builds(Dynamic, max_delay=SECONDS, default_policy=POLICIES, level_policies=LEVELS),
    st.builds(
        Sequence,
        idle_seconds=SECONDS,
        states=several(st.builds(State, first=MADE_UP)),
        unannounced=st.none() | st.builds(Unannounced, life_seconds=st.none() | SECONDS),
    ),
    st.builds(Graph, steps=several(st.builds(Step, inputs=TEXTS, outputs=TEXTS))),
)
HANDLERS = st.builds(
    Handler,
    path=several(PATHS),
    directory=st.none() | PATHS,
    environment=TEXTS,
    settings=st.dictionaries(TEXT, VALUES, max_size=2),
)
SPECS = st.builds(
    ModelSpec,
    root=PATHS,
    inputs=several(st.builds(TensorSpec)),
    outputs=several(st.builds(TensorSpec)),
    batching=st.builds(Batching),
    scheduling=SCHEDULING,
    groups=several(st.builds(InstanceGroup, idle_seconds=SECONDS)),
    limits=st.builds(Limits, run_deadline=st.none() | SECONDS),
    warmups=several(st.builds(Warmup, inputs=several(MADE_UP))),
    version_policy=st.builds(Latest) | st.just(All()) | st.builds(Specific, st.frozensets(TEXT)),
    parameters=TEXTS,
    handler=st.none() | HANDLERS,
    foreign=st.none(),
    metrics=st.builds(ModelMetrics, labels=TEXTS, first_part_bounds=several(SECONDS)),
    origin=st.dictionaries(TEXT, st.builds(Origin), max_size=2),
    reports=several(st.builds(Finding, info=st.none())),
    batch_shapes=st.builds(BatchShapes),
)


def there_and_back(spec: ModelSpec) -> ModelSpec:
    return decode(json.loads(json.dumps(encode(spec))))


@settings(max_examples=60, deadline=None)
@given(SPECS)
def test_a_spec_survives_the_way_with_its_types(spec: ModelSpec) -> None:
    again = there_and_back(spec)
    assert again == spec
    unordered = Latest()  # in place of a set, whose order of printing is by chance
    printed = [repr(replace(one, version_policy=unordered)) for one in (again, spec)]
    assert printed[0] == printed[1]  # 1 is no True, and a list no tuple


def test_the_foreign_document_stays_behind() -> None:
    plain = ModelSpec("m", "1", Path("/m"), "e", "file")
    assert there_and_back(replace(plain, foreign=Foreign("triton", object()))) == plain


def test_a_class_that_is_none_of_a_fields_is_refused_with_those_that_are() -> None:
    values = encode(ModelSpec("m", "1", Path("/m"), "e", "file"))
    values["scheduling"] = ["Rota", {}]
    with pytest.raises(
        msgspec.ValidationError, match="scheduling is a 'Rota'; expected one of Dynamic, Sequence, Graph"
    ):
        decode(values)
