"""Folders of scikit-learn's estimators go to DJL's handler, or are refused by key, file and what to write."""

from pathlib import Path

import pytest
from tests.harness.djl_folders import FORMAT, HANDLER, faults, make, one
from tests.harness.mending import mended

SKLEARN = "djl_python.sklearn_handler"
NAMED = f"option.entryPoint={SKLEARN}"
TRUSTED = "option.trust_insecure_model_files=true"
TRUST = "option.trust_insecure_model_files"
DECORATED = """\
from djl_python.input_parser import input_formatter

@input_formatter
def read(inputs, **kwargs):
    return inputs
"""
SAGEMAKER = "def model_fn(model_dir):\n    return None\n"
INIT = "import djl_python.input_parser as p\n@p.init_handler\ndef load(model_dir): ...\n"


@pytest.mark.parametrize(
    ("settings", "files"),
    [
        ((), {"m.skops": ""}),
        ((), {"model.skops": "", "model.pkl": ""}),
        ((), {"model.skops": "", "model.py": DECORATED}),
        ((), {"model.pkl": "", "model.py": SAGEMAKER}),
        ((NAMED, TRUSTED), {"other.jl": ""}),
        ((NAMED, TRUSTED, "option.model_format=cloudpickle"), {"model.skops": "", "a.cloudpkl": ""}),
        ((NAMED,), {"model.py": INIT}),
        ((NAMED,), {"a.pkl": "", "b.pkl": "", "model.py": SAGEMAKER}),
        (("option.trust_insecure_model_files=True",), {"model.joblib": ""}),
    ],
)
def test_a_folder_runs_the_handler(tmp_path: Path, settings: tuple[str, ...], files: dict[str, str]) -> None:
    spec = one(make(tmp_path, "m", *settings, **files))
    assert (spec.engine, spec.entry) == ("python-djl", SKLEARN)
    assert spec.handler is not None
    assert spec.handler.function == "handle"


def test_a_handler_of_the_folders_own_goes_first(tmp_path: Path) -> None:
    assert one(make(tmp_path, "m", **{"model.py": HANDLER, "model.pkl": ""})).entry == "model.py"


@pytest.mark.parametrize("suffix", [".joblib", ".pkl", ".pickle", ".cloudpkl"])
def test_a_pickle_without_trust_is_refused_with_its_file_and_is_served_by_the_mend(
    tmp_path: Path, suffix: str
) -> None:
    folder = make(tmp_path, "m", "job_queue_size=7", f"{TRUST}=no", **{f"model{suffix}": ""})
    (fault,) = faults(folder)
    assert (fault.key, fault.line) == (TRUST, 2)
    assert str(folder / f"model{suffix}") in fault.found
    assert f"{TRUST}=true" in fault.hint
    file = folder / "serving.properties"
    file.write_text(mended(file.read_text(), fault))
    assert one(folder).entry == SKLEARN


def test_without_settings_the_key_to_write_is_named(tmp_path: Path) -> None:
    (fault,) = faults(make(tmp_path, "m", **{"m.joblib": ""}))
    assert (fault.key, fault.line) == (TRUST, None)


@pytest.mark.parametrize(
    ("settings", "files", "key", "line", "text"),
    [
        ((NAMED, "option.model_format=skop"), {"m.skops": ""}, "option.model_format", 2, "mean skops?"),
        ((NAMED,), {}, "option.model_format", None, "no file of an estimator in"),
        ((NAMED,), {"a.skops": "", "b.skops": ""}, "option.model_format", None, "a.skops, b.skops"),
        ((NAMED, TRUSTED), {"a.pkl": "", "b.jl": ""}, "option.model_format", None, "a.pkl, b.jl"),
        ((NAMED, "option.model_format=joblib"), {"m.skops": ""}, "option.model_format", 2, "but m.skops"),
        (
            ("option.entryPoint=djl_python.sklearn_handlr",),
            {"m.skops": ""},
            "option.entryPoint",
            1,
            f"mean {SKLEARN}?",
        ),
    ],
)
def test_what_cannot_be_opened_is_named(
    tmp_path: Path, settings: tuple[str, ...], files: dict[str, str], key: str, line: int | None, text: str
) -> None:
    (fault,) = faults(make(tmp_path, "m", *settings, **files))
    assert (fault.key, fault.line) == (key, line)
    assert text in str(fault)


def test_a_format_that_the_file_is_not_in_is_mended_by_leaving_it_out(tmp_path: Path) -> None:
    folder = make(tmp_path, "m", NAMED, "option.model_format=joblib", **{"m.skops": ""})
    (fault,) = faults(folder)
    file = folder / "serving.properties"
    file.write_text(mended(file.read_text(), fault))
    assert one(folder).entry == SKLEARN


def test_requests_come_one_by_one(tmp_path: Path) -> None:
    spec = one(make(tmp_path, "m", "batch_size=4", **{"m.skops": ""}))
    assert spec.batching.max_rows == 1
    (report,) = spec.reports
    assert (report.key, report.line) == ("batch_size", 1)


def test_a_pickle_of_mlflows_is_not_a_folder_of_djls(tmp_path: Path) -> None:
    folder = make(tmp_path, "m", **{"model.pkl": ""})
    (folder / "MLmodel").write_text("")
    assert not FORMAT.claims(folder)
