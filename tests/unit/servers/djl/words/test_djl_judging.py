"""Values of serving.properties that are none, and keys that are near to one of DJL's."""

import pytest

from trivium.codecs.java_properties import read
from trivium.servers.djl.words.engines import ENGINES, LANGUAGE_MODEL, ONNX, PYTHON, PYTORCH, DjlEngine
from trivium.servers.djl.words.judging import KNOWN, MOST_COMPARED, judge
from trivium.servers.djl.words.names import SHEET, nearest
from trivium.servers.djl.words.settings import DjlSettings
from trivium.servers.djl.words.values import FORMS
from trivium.types.findings import Finding, Severity


def judged(line: str, engine: DjlEngine = PYTHON) -> list[Finding]:
    return judge(read("f", line.encode()), engine)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("batch_sise", "batch_size"),
        ("batchSize", "batch_size"),
        ("minworkers", "minWorkers"),
        ("min_workers", "minWorkers"),
        ("gpu.minWorker", "gpu.minWorkers"),
        ("option.predict_timeot", "option.predict_timeout"),
        ("predict_timeout", "option.predict_timeout"),
        ("option.batch_size", "batch_size"),
        ("option.entrypoint", "option.entryPoint"),
        ("option.max_rolling_batch_sise", "option.max_rolling_batch_size"),
        ("option.gpu_memory_utilisation", "option.gpu_memory_utilization"),
        ("engien", "engine"),
        ("tasks", "task"),
    ],
)
def test_a_key_near_to_a_known_one_is_passed_on_and_named(written: str, meant: str) -> None:
    (finding,) = judged(f"\n{written}=1")
    assert (finding.severity, finding.line, finding.key) == (Severity.NOTICE, 2, written)
    assert finding.hint == f"Did you mean {meant}?"
    assert DjlSettings(read("f", f"{written}=1".encode())).options()[written.removeprefix("option.")] == "1"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("option.num_ctx", "option.max_model_len"),
        ("option.n_ctx", "option.max_model_len"),
        ("option.max_seq_len", "option.max_model_len"),
        ("option.tensor_parallel_size", "option.tensor_parallel_degree"),
        ("option.hf_model_id", "option.model_id"),
    ],
)
@pytest.mark.parametrize("engine", [PYTHON, LANGUAGE_MODEL])
def test_what_others_call_otherwise_is_known_by_their_name(
    written: str, meant: str, engine: DjlEngine
) -> None:
    hints = [finding.hint for finding in judged(f"{written}=1", engine)]
    assert hints == [f"Did you mean {meant}?"]


def _elsewhere() -> list[tuple[DjlEngine, str, str]]:
    owners = [*(engine for engine in ENGINES if engine.engine), LANGUAGE_MODEL]
    return [
        (runs, key, "language models" if owner is LANGUAGE_MODEL else owner.name)
        for runs in (PYTORCH, ONNX, LANGUAGE_MODEL)
        for owner in owners
        for key in owner.keys
        if key not in runs.keys
    ]


@pytest.mark.parametrize(("engine", "key", "owner"), _elsewhere())
def test_an_option_of_another_engine_is_said_to_be_that(engine: DjlEngine, key: str, owner: str) -> None:
    (finding,) = judged(f"{key}=1", engine)
    assert finding.severity is Severity.NOTICE
    assert " is not served: an option of " in finding.found
    assert owner in finding.found
    runs = "this model is a language model" if engine is LANGUAGE_MODEL else f"runs on {engine.name}"
    assert finding.found.endswith(runs)


def test_a_native_engine_says_both_in_one_finding() -> None:
    (finding,) = judged("batch_sise=2", ONNX)
    assert finding.hint == "Did you mean batch_size?"


@pytest.mark.parametrize(
    "key",
    [
        "topK",
        "top_p",
        "top_k",
        "mask",
        "width",
        "labels",
        "option.seed",
        "model_version",
        "a",
        "",
        "x" * 5000,
    ],
)
def test_a_handlers_own_names_are_left_alone(key: str) -> None:
    assert judged(f"{key}=7.5") == []


@pytest.mark.parametrize("key", sorted(SHEET | set(KNOWN)))
def test_no_name_of_djls_is_taken_for_a_slip(key: str) -> None:
    assert nearest(key, KNOWN) == ""
    assert not any("is no key" in finding.found for finding in judged(f"{key}=1"))


def test_a_file_of_ten_thousand_unknown_keys_is_compared_in_part() -> None:
    letters = [chr(number) for number in range(0x4E00, 0x4E00 + 10_000)]
    assert len(judged("\n".join(f"batch_siz{letter}=1" for letter in letters))) == MOST_COMPARED


def test_every_form_belongs_to_a_key_of_some_engine() -> None:
    known = {key for each in (*ENGINES, LANGUAGE_MODEL) for key in each.keys}
    assert set(FORMS) <= known


@pytest.mark.parametrize(
    ("line", "severity", "words"),
    [
        ("batch_size=0", Severity.NOTICE, "read as not set"),
        ("max_batch_delay=-1", Severity.NOTICE, "a whole number from 0 to"),
        ("max_batch_delay=0", None, ""),
        ("maxWorkers=1025", Severity.ERROR, "a whole number from 1 to 1024"),
        ("option.enable_venv=yes", Severity.NOTICE, "Did you mean true?"),
        ("option.enable_venv=flase", Severity.NOTICE, "Did you mean false?"),
        ("option.enable_venv=maybe", Severity.NOTICE, "read as false"),
        ("option.rolling_batch=vlm", Severity.ERROR, "Did you mean vllm?"),
        ("option.tensor_parallel_degree=-1", Severity.NOTICE, "read as not set"),
        ("option.tensor_parallel_degree=maximal", Severity.ERROR, "or max"),
        ("option.max_output_size=many", Severity.NOTICE, "a whole number from 1"),
        ("option.predict_timeout=2m", Severity.ERROR, "Write digits alone"),
    ],
)
def test_values_that_cannot_be_and_what_djl_reads_as_unset(
    line: str, severity: Severity | None, words: str
) -> None:
    found = judged(line)
    assert [finding.severity for finding in found] == ([severity] if severity else [])
    assert all(words in str(finding) and finding.line == 1 for finding in found)


@pytest.mark.parametrize(
    ("line", "near"),
    [
        ("option.ortDevice=TensorRt5", "TensorRT"),
        ("option.optLevel=BASIC", "BASIC_OPT"),
        ("option.executionMode=parallell", "PARALLEL"),
        ("batchifier=stak", "stack"),
    ],
)
def test_one_word_of_several_is_named_with_the_nearest(line: str, near: str) -> None:
    (finding,) = judged(line, ONNX)
    assert (finding.severity, finding.hint) == (Severity.ERROR, f"Did you mean {near}?")


def test_what_is_read_as_unset_leaves_the_next_key_to_decide() -> None:
    settings = DjlSettings(read("f", b"cpu.maxWorkers=0\nmaxWorkers=5"))
    assert settings.number(("cpu.maxWorkers", "maxWorkers"), 1).value == 5
