"""What is written behind a key in a line, in the forms of all files that configure models."""

import pytest

from trivium.cli.written_values import LONGEST_LINE, written_value


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        ("max_batch_size: 8", "max_batch_size", "8"),
        ("  max_queue_delay_microseconds: 100 }", "dynamic_batching.max_queue_delay_microseconds", "100"),
        ('input [ { name: "x" dims: [ 1, 2 ] } ]', "input[0].name", "x"),
        ('input [ { name: "x" dims: [ 1, 2 ] } ]', "input[0].dims", "[ 1, 2 ]"),
        ('{ name: "x" }, { name: "y" }', "input[1].name", None),
        ("instance_group [ { count: 2 } ]", "instance_group[0].count", "2"),
        ("instance_group [", "instance_group", None),
        ("maxWorkers: 4", "maxWorkers", "4"),
        ("handler: |", "handler", None),
        ('  "modelName": "echo",', "model.modelName", "echo"),
        ("my_max_batch_size: 8", "max_batch_size", None),
        ("", "x", None),
        ("x: 1", "", None),
        ("x: " + "1" * LONGEST_LINE, "x", None),
    ],
)
def test_of_blocks_and_documents(line: str, key: str, value: str | None) -> None:
    assert written_value(line, key, is_properties=False) == value


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        ("option.dtype = fp16 ", "option.dtype", "fp16"),
        ("batch_size=4", "batch_size", "4"),
        ("batch_size=4,\\", "batch_size", None),
        ("batch_size 4", "batch_size", None),
        ("x_batch_size=4", "batch_size", None),
        ("a.b=c=d", "a.b", "c=d"),
    ],
)
def test_of_properties(line: str, key: str, value: str | None) -> None:
    assert written_value(line, key, is_properties=True) == value
