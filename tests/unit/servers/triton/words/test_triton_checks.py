"""What may be read but must not be said: each with its severity, line and key."""

import pytest
from tests.harness.triton_configs import GPUS, RICH

from trivium.servers.triton.words.checks import check
from trivium.servers.triton.words.reader import read_config
from trivium.types.findings import Finding, Severity

E, N = Severity.ERROR, Severity.NOTICE
TENSOR = 'name: "x" data_type: TYPE_FP32 dims: 4'


def findings_of(text: str, gpus: int = 0) -> list[Finding]:
    return check(read_config("c", text.encode()), gpus)


CASES = [
    (f"input {{ {TENSOR} }}\ninput {{ {TENSOR} }}", E, 2, "input[1].name"),
    ('output {\nname: "x" data_type: TYPE_FP32\ndims: [ 4,\n0 ] }', E, 4, "output[0].dims[1]"),
    ('input {\nname: "x" data_type: TYPE_FP32 dims: -2 }', E, 2, "input[0].dims[0]"),
    ("input {\nname: 'x' data_type: TYPE_FP32\ndims: [ ] }", E, 3, "input[0].dims"),
    ("input {\nname: '' data_type: TYPE_FP32 dims: 1 }", E, 2, "input[0].name"),
    ("input {\nname: 'x' data_type: TYPE_INVALID dims: 1 }", E, 2, "input[0].data_type"),
    ("\nmax_batch_size: -1", E, 2, "max_batch_size"),
    (
        "max_batch_size: 4\ndynamic_batching { preferred_batch_size: [ 2,\n8 ] }",
        E,
        3,
        "preferred_batch_size[1]",
    ),
    ("max_batch_size: 4\ndynamic_batching { preferred_batch_size: 0 }", E, 2, "preferred_batch_size[0]"),
    ("dynamic_batching { preferred_batch_size: 1 }", E, 1, "preferred_batch_size[0]"),
    ("\ndynamic_batching {\npriority_levels: 2 }", E, 2, "default_priority_level"),
    ("dynamic_batching { priority_levels: 2\ndefault_priority_level: 3 }", E, 2, "default_priority_level"),
    (
        "dynamic_batching { priority_levels: 2 default_priority_level: 1\npriority_queue_policy { key: 3 value { } } }",
        E,
        2,
        "priority_queue_policy[0].key",
    ),
    (
        "dynamic_batching { default_priority_level: 1\npriority_levels: 1001 }",
        E,
        2,
        "dynamic_batching.priority_levels",
    ),
    ("dynamic_batching {\ndefault_priority_level: 1 }", N, 2, "default_priority_level"),
    ("version_policy {\nlatest { } }", E, 2, "version_policy.latest.num_versions"),
    ("\nversion_policy { }", E, 2, "version_policy"),
    ("instance_group { kind: KIND_CPU\ngpus: 0 }", E, 2, "instance_group[0].gpus"),
    ("instance_group {\nkind: KIND_GPU }", E, 2, "instance_group[0].kind"),
    ("instance_group { gpus: [ 0,\n1 ] }", E, 2, "instance_group[0].gpus[1]"),
    ("instance_group {\nkind: KIND_MODEL }", N, 2, "instance_group[0].kind"),
    ("instance_group {\ncount: -1 }", N, 2, "instance_group[0].count"),
    ('sequence_batching {\nstate { input_name: "s" } }', E, 2, "state[0].output_name"),
    ("instance_group { rate_limiter {\nresources { count: 1 } } }", E, 2, "resources[0].name"),
    ("\nensemble_scheduling { }", E, 2, "ensemble_scheduling.step"),
    ("\nruntime: 'x'", E, 2, "runtime"),
    (f"input {{ {TENSOR} reshape {{\nshape: [ 2, 3 ] }} }}", E, 2, "input[0].reshape.shape"),
    (f"output {{ {TENSOR} reshape {{\nshape: [ 0 ] }} }}", E, 2, "output[0].reshape.shape"),
    (f"input {{ {TENSOR}\nreshape {{ shape: [ -1 ] }} }}", E, 2, "input[0].reshape.shape"),
    ("input { name: 'x' data_type: TYPE_FP32 dims: [ -1, 4 ] reshape {\nshape: [ 4, -1 ] } }", E, 2, "shape"),
    (f"input {{ {TENSOR}\nis_shape_tensor: true }}", E, 2, "input[0].is_shape_tensor"),
    ("model_operations {\nop_library_filename: 'x' }", E, 2, "model_operations.op_library_filename"),
    ("model_repository_agents {\nagents { } }", E, 2, "model_repository_agents.agents"),
    ("\nbatch_input { }", E, 2, "batch_input[0].source_input"),
    ("\nbatch_output { source_input: 'x' }", E, 2, "batch_output[0].target_name"),
    (
        f"input {{ {TENSOR}\nformat: FORMAT_NHWC }}".replace("dims: 4", "dims: [ 2, 2, 3 ]"),
        N,
        2,
        "input[0].format",
    ),
    ("optimization {\ncuda { graphs: true } }", N, 2, "optimization.cuda"),
    (
        "optimization { input_pinned_memory {\nenable: false } }",
        N,
        2,
        "optimization.input_pinned_memory.enable",
    ),
    ("instance_group {\npassive: true }", N, 2, "instance_group[0].passive"),
    (
        "model_transaction_policy { decoupled: true } response_cache {\nenable: true }",
        E,
        2,
        "response_cache.enable",
    ),
    ("sequence_batching { } response_cache {\nenable: true }", E, 2, "response_cache.enable"),
    ("\ncc_model_filenames { key: 'a' value: 'b' }", N, 2, "cc_model_filenames"),
    (
        'parameters { key: "graph_level" value { string_value: "1" } } optimization { graph {\nlevel: 2 } }',
        N,
        2,
        "optimization.graph.level",
    ),
]


@pytest.mark.parametrize(("text", "severity", "line", "key"), CASES)
def test_names_it(text: str, severity: Severity, line: int, key: str) -> None:
    findings = [
        each for each in findings_of(text, gpus=1 if "gpus: [" in text else 0) if each.key.endswith(key)
    ]
    assert [(finding.severity, finding.line) for finding in findings] == [(severity, line)]
    assert severity is N or (findings[0].expected and findings[0].hint)


@pytest.mark.parametrize(
    "text",
    [
        "model_transaction_policy { decoupled: false }",
        "optimization { input_pinned_memory { enable: true } output_pinned_memory { } }",
        f"input {{ {TENSOR} format: FORMAT_NONE is_shape_tensor: false }}",
        "dynamic_batching { }",
        f"input {{ {TENSOR} reshape {{ shape: [ 2, 1, 2 ] }} }}",
        "max_batch_size: 2 input { name: 'x' data_type: TYPE_FP32 dims: [ 1, 1 ] reshape { } }",
        "input { name: 'x' data_type: TYPE_FP32 dims: 1 reshape { } }",
        "input { name: 'x' data_type: TYPE_FP32 dims: [ 1, -1, 4 ] reshape { shape: [ -1, 2, 2 ] } }",
        "response_cache { enable: false } runtime: ''",
    ],
)
def test_what_changes_nothing_is_not_worth_a_word(text: str) -> None:
    assert findings_of(text) == []


WARMUP = """max_batch_size: 4
input {{ {tensor} }}
model_warmup {{ name: 'w' batch_size: {rows}
inputs {{
{entry} }} }}"""


@pytest.mark.parametrize(
    ("rows", "entry", "line", "key"),
    [
        (1, "key: 'y' value { data_type: TYPE_FP32 dims: 4 zero_data: true }", 5, "inputs[0].key"),
        (1, "key: 'y' value { data_type: TYPE_FP32 dims: 4 zero_data: true }", 3, 'inputs["x"]'),
        (1, "key: 'x' value { data_type: TYPE_FP16 dims: 4 zero_data: true }", 5, "value.data_type"),
        (1, "key: 'x' value { data_type: TYPE_FP32 dims: 5 zero_data: true }", 5, "value.dims"),
        (1, "key: 'x' value { data_type: TYPE_FP32 dims: -1 zero_data: true }", 5, "value.dims"),
        (8, "key: 'x' value { data_type: TYPE_FP32 dims: 4 zero_data: true }", 5, "value.dims"),
        (1, "key: 'x' value { data_type: TYPE_FP32 dims: 4 }", 5, "value"),
        (
            1,
            "key: 'x' value { data_type: TYPE_FP32 dims: 4 zero_data: true random_data: true }",
            5,
            "random_data",
        ),
    ],
)
def test_warm_up_that_does_not_fit(rows: int, entry: str, line: int, key: str) -> None:
    text = WARMUP.format(tensor=TENSOR, rows=rows, entry=entry)
    faults = [(each.line, each.key) for each in findings_of(text) if each.severity is E]
    assert any(at == line and name.endswith(key) for at, name in faults)


def test_a_model_without_batches_is_warmed_up_by_its_dims_alone() -> None:
    """There batch_size can only be 1, as the original says, and is no dimension."""
    entry = "key: 'x' value { data_type: TYPE_FP32 dims: 4 zero_data: true }"
    text = WARMUP.format(tensor=TENSOR, rows=1, entry=entry).replace("max_batch_size: 4", "max_batch_size: 0")
    assert findings_of(text) == []
    assert [each.key for each in findings_of(text.replace("batch_size: 1", "batch_size: 2"))] == [
        "model_warmup[0].inputs[0].value.dims"
    ]


def test_the_rich_file_is_clean() -> None:
    assert findings_of(RICH, GPUS) == []
