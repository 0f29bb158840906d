"""Models of tables, held beside the libraries that made them: facts, answers, options, and files that are none."""

import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.harness.table_models import TREE, answers, digits, spec_of, trained, tumours, write

from trivium.catalogue import CATALOGUE
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.spec import Isolation, TensorSpec

FILES = {
    "xgboost json": ("xgboost", "m.json", {}),
    "xgboost ubj": ("xgboost", "m.ubj", {}),
    "lightgbm": ("lightgbm", "m.txt", {}),
    "skops": ("sklearn", "m.skops", {"skops_trusted_types": TREE}),
}


@pytest.mark.parametrize("classes", [10, 2])
@pytest.mark.parametrize("kind", FILES)
def test_answers_are_the_library_s_own(tmp_path: Path, kind: str, classes: int) -> None:
    engine, name, parameters = FILES[kind]
    spec = spec_of(write(tmp_path / name, engine, classes), engine, **parameters)
    rows = (digits() if classes == 10 else tumours())[0][:24]
    assert spec.inputs == (TensorSpec("input-0", DataType.FP32, (rows.shape[1],)),)
    assert [one.name for one in spec.outputs] == ["predict", "predict_proba"]
    assert spec.outputs[1].dims == (classes,)
    outcomes = answers(spec, rows[:1], rows[1:20], rows[20:])
    estimator = trained(engine, classes)
    np.testing.assert_array_equal(
        np.concatenate([one["predict"] for one in outcomes]), estimator.predict(rows)
    )
    np.testing.assert_allclose(
        np.concatenate([one["predict_proba"] for one in outcomes]), estimator.predict_proba(rows), atol=1e-5
    )


@pytest.mark.parametrize(
    ("answer", "library_s"),
    [
        ("values", lambda booster, rows: booster.inplace_predict(rows)),
        ("margin", lambda booster, rows: booster.inplace_predict(rows, predict_type="margin")),
        ("leaves", lambda booster, rows: booster.predict(matrix(rows), pred_leaf=True)),
        ("contributions", lambda booster, rows: booster.predict(matrix(rows), pred_contribs=True)),
    ],
)
def test_a_booster_of_xgboost_answers_as_it_is_asked(tmp_path: Path, answer: str, library_s) -> None:
    spec = spec_of(write(tmp_path / "m.json", "xgboost"), "xgboost", answer=answer)
    rows = digits()[0][:5]
    (outcome,) = answers(spec, rows)
    (output,) = spec.outputs
    expected = library_s(trained("xgboost").get_booster(), rows)
    np.testing.assert_allclose(outcome[output.name], expected, rtol=1e-6)
    assert output.dims == expected.shape[1:]


def matrix(rows):
    import xgboost

    return xgboost.DMatrix(rows)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("values", {}),
        ("margin", {"raw_score": True}),
        ("leaves", {"pred_leaf": True}),
        ("contributions", {"pred_contrib": True}),
    ],
)
def test_a_booster_of_lightgbm_answers_as_it_is_asked(tmp_path: Path, answer: str, words) -> None:
    spec = spec_of(write(tmp_path / "m.txt", "lightgbm"), "lightgbm", answer=answer)
    rows = digits()[0][:5]
    (outcome,) = answers(spec, rows)
    expected = trained("lightgbm").booster_.predict(rows, **words)
    np.testing.assert_allclose(outcome[spec.outputs[0].name], expected, rtol=1e-6)


@pytest.mark.parametrize("threshold", ["0.1", "0.9"])
def test_a_threshold_says_from_where_on_a_row_is_of_the_second_class(tmp_path: Path, threshold: str) -> None:
    path = write(tmp_path / "m.json", "xgboost", 2)
    spec = spec_of(path, "xgboost", answer="classes", threshold=threshold)
    rows = tumours()[0]
    (outcome,) = answers(spec, rows[:64])
    chances = trained("xgboost", 2).predict_proba(rows[:64])[:, 1]
    np.testing.assert_array_equal(outcome["predict"].ravel(), chances > float(threshold))


def test_an_estimator_that_transforms_or_names_its_classes(tmp_path: Path) -> None:
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    linear = pytest.importorskip("sklearn.linear_model")
    skops = pytest.importorskip("skops.io")
    rows, wanted = digits()
    scaler = preprocessing.StandardScaler().fit(rows)
    skops.dump(scaler, tmp_path / "scaler.skops")
    spec = spec_of(tmp_path / "scaler.skops", "sklearn")
    (outcome,) = answers(spec, rows[:3])
    np.testing.assert_allclose(outcome["transform"], scaler.transform(rows[:3]), atol=1e-5)
    words = np.array(["even", "odd"])[wanted % 2]
    named = linear.RidgeClassifier().fit(rows, words)
    skops.dump(named, tmp_path / "named.skops")
    spec = spec_of(tmp_path / "named.skops", "sklearn")
    assert [(one.name, one.datatype) for one in spec.outputs] == [("predict", DataType.BYTES)]
    (outcome,) = answers(spec, rows[:3])
    assert [bytes(one).decode() for one in outcome["predict"]] == list(named.predict(rows[:3]))


def test_rows_of_another_width_are_refused_and_their_neighbours_answered(tmp_path: Path) -> None:
    spec = spec_of(write(tmp_path / "m.json", "xgboost"), "xgboost")
    rows = digits()[0]
    wrong, right = answers(spec, rows[:2, :5], rows[:2])
    assert isinstance(wrong, ServeError)
    assert wrong.code is Code.INVALID
    assert "trained with 64 columns, and the input has 5" in wrong.message
    np.testing.assert_array_equal(right["predict"], trained("xgboost").predict(rows[:2]))


@pytest.mark.parametrize("suffix", [".joblib", ".pkl", ".cloudpkl"])
def test_a_pickle_is_opened_where_it_is_trusted_and_by_an_instance_alone(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"m{suffix}", "sklearn")
    with pytest.raises(ServeError, match="is a pickle, which runs what its author wrote") as refused:
        spec_of(path, "sklearn")
    assert "--engine-parameters sklearn.trust_insecure_model_files=true" in refused.value.message
    spec = spec_of(path, "sklearn", trust_insecure_model_files="true")
    rows = digits()[0][:4]
    (outcome,) = answers(spec, rows)
    np.testing.assert_array_equal(outcome["predict"], trained("sklearn").predict(rows))


class Marker:
    """What writes a file when it is unpickled."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.mark.parametrize(
    "trusts", [{}, {"trust_insecure_model_files": "true"}], ids=["not trusted", "trusted"]
)
def test_facts_of_a_hostile_pickle_run_nothing(tmp_path: Path, trusts) -> None:
    import pickle

    (tmp_path / "m.pkl").write_bytes(pickle.dumps(Marker(str(tmp_path / "marker"))))
    if trusts:
        spec_of(tmp_path / "m.pkl", "sklearn", **trusts)
    else:
        with pytest.raises(ServeError):
            spec_of(tmp_path / "m.pkl", "sklearn")
    assert not (tmp_path / "marker").exists()


def test_types_that_skops_does_not_trust_are_named_with_what_to_write(tmp_path: Path) -> None:
    path = write(tmp_path / "m.skops", "sklearn")
    with pytest.raises(ServeError, match=f"not trusted: {TREE}") as refused:
        spec_of(path, "sklearn")
    assert f"--engine-parameters sklearn.skops_trusted_types={TREE}" in refused.value.message


@pytest.mark.parametrize(
    ("engine", "start", "words"),
    [
        ("xgboost", b"binf", "XGBoost's old binary form"),
        ("xgboost", b"tree\n", "It is a file of LightGBM"),
        ("xgboost", b"{}", "Save it anew with XGBoost"),
        ("xgboost", b"", "Save it anew with XGBoost"),
        ("lightgbm", b"{}", "Save it anew with LightGBM"),
        ("sklearn", b"PK", "Save it anew: skops.io.dump"),
    ],
)
def test_what_is_no_model_is_refused_with_what_to_do(
    tmp_path: Path, engine: str, start: bytes, words: str
) -> None:
    name = {"xgboost": "m.bst", "lightgbm": "m.txt", "sklearn": "m.skops"}[engine]
    (tmp_path / name).write_bytes(start)
    with pytest.raises(ServeError, match=words) as refused:
        spec_of(tmp_path / name, engine)
    assert refused.value.code is Code.LOAD_FAILED
    assert str(tmp_path / name) in refused.value.message


def test_a_model_that_declares_shapley_values_answers_them(tmp_path: Path) -> None:
    for engine, name in (("xgboost", "m.json"), ("lightgbm", "m.txt")):
        spec = spec_of(write(tmp_path / name, engine, 2), engine, answer="values")
        declared = (
            TensorSpec("output__0", DataType.FP32, (1,)),
            TensorSpec("treeshap_output", DataType.FP32, (31,)),
        )
        rows = tumours()[0][:4]
        (outcome,) = answers(replace(spec, outputs=declared), rows)
        assert outcome["output__0"].shape == (4, 1)
        np.testing.assert_allclose(
            outcome["output__0"].ravel(), trained(engine, 2).predict_proba(rows)[:, 1], atol=1e-6
        )
        margins = np.log(outcome["output__0"] / (1 - outcome["output__0"])).ravel()
        np.testing.assert_allclose(outcome["treeshap_output"].sum(axis=1), margins, atol=1e-3)


SCRIPT = """
import sys
from pathlib import Path
from tests.harness.table_models import spec_of, answers
from trivium.types.errors import ServeError
import numpy as np
try:
    spec = spec_of(Path(sys.argv[1]), "xgboost")
    answers(spec, np.zeros((1, spec.inputs[0].dims[0]), np.float32))
except ServeError as error:
    assert error.message.startswith("Model 'm': "), error.message
    print("refused")
else:
    print("served")
"""


def test_damaged_files_of_xgboost_are_refused_or_served(tmp_path: Path) -> None:
    """Its instances run in threads: a file that ended the process would end the server."""
    chance = random.Random(38)
    ends = []
    for turn, name in enumerate(["m.json", "m.ubj"] * 3):
        data = bytearray(write(tmp_path / name, "xgboost", 2).read_bytes())
        if turn % 3 == 0:
            data = data[: chance.randrange(len(data))]
        else:
            for _ in range(chance.randrange(1, 9)):
                data[chance.randrange(len(data))] = chance.randrange(256)
        path = tmp_path / f"{turn}{Path(name).suffix}"
        path.write_bytes(data)
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, path], capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr[-2000:]
        ends.append(done.stdout.strip())
    assert "refused" in ends


def test_where_each_runs_follows_from_what_it_does() -> None:
    isolation = {name: CATALOGUE.engines[name].isolation for name in ("sklearn", "xgboost", "lightgbm")}
    assert isolation["sklearn"] == isolation["lightgbm"] == (Isolation.PROCESS,)
    assert isolation["xgboost"] == (Isolation.THREAD, Isolation.PROCESS)


def test_a_parameter_that_means_nothing_is_told_and_a_wrong_one_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "m.json", "xgboost", 2)
    spec = spec_of(path, "xgboost", answr="values")
    (note,) = CATALOGUE.engines["xgboost"].facts(replace(spec, inputs=(), outputs=())).notes
    assert "Did you mean 'answer'?" in note
    with pytest.raises(ServeError, match="'answer' is 'x'"):
        spec_of(path, "xgboost", answer="x")
    with pytest.raises(ServeError, match=r"dims \[5\], and the model file m.json has \[30\]"):
        answers(replace(spec, inputs=(TensorSpec("input__0", DataType.FP32, (5,)),)), tumours()[0][:1])
