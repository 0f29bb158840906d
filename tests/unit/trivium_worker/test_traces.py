"""What user code raised, as its author reads it: no frame of ours, the author's own line, and what to do."""

import json
import sys
from pathlib import Path

import pytest

import trivium_worker
from trivium_worker.dialects import run_file
from trivium_worker.runtime.life import words_of
from trivium_worker.runtime.traces import advice_on, notes_of, place_of, print_trace, trace_of

OURS = str(Path(trivium_worker.__file__).parent)


def raised(folder: Path, text: str) -> BaseException:
    path = folder / "model.py"
    path.write_text(text)
    try:
        run_file(str(path), "model_of_a_test")
    except BaseException as error:
        return error
    raise AssertionError("it raised nothing")


def test_the_authors_own_line_comes_first_and_a_librarys_frames_stay(tmp_path: Path) -> None:
    error = raised(tmp_path, "import json\n\njson.loads('{')\n")
    assert place_of(error) == f"{tmp_path / 'model.py'}, line 3"
    trace = trace_of(error)
    assert trace.startswith("Traceback (most recent call last):\n")
    assert str(Path(json.__file__).parent) in trace
    assert OURS not in trace
    assert "frozen" not in trace
    first, second = words_of(error).splitlines()[:2]
    assert first.startswith(
        f"{tmp_path / 'model.py'}, line 3: the model's code raised json.decoder.JSONDecodeError:"
    )
    assert second == "Traceback (most recent call last):"


def test_causes_keep_their_own_frames(tmp_path: Path) -> None:
    text = "try:\n    {}['a']\nexcept KeyError as error:\n    raise ValueError('b') from error\n"
    trace = trace_of(raised(tmp_path, text))
    assert trace.count("model.py") == 2
    assert OURS not in trace


def test_a_file_that_is_no_python_is_placed_where_it_is_wrong(tmp_path: Path) -> None:
    assert place_of(raised(tmp_path, "a = 1\nb = (\n")) == f"{tmp_path / 'model.py'}, line 2"


@pytest.mark.parametrize(
    ("module", "advice"),
    [
        ("cv2_", "neither a file of the model's folder nor installed in the handler's Python"),
        ("sklearn.nothing", f"Install it with: {sys.executable} -m pip install scikit-learn"),
    ],
)
def test_an_import_that_fails_says_what_to_do(
    tmp_path: Path,
    module: str,
    advice: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, module.partition(".")[0], None)
    error = raised(tmp_path, f"import {module}\n")
    assert advice in advice_on(error)
    assert advice in words_of(error).splitlines()[0]
    print_trace(error)
    assert advice in capsys.readouterr().err.splitlines()[-1]


def test_other_errors_have_no_advice(tmp_path: Path) -> None:
    assert advice_on(raised(tmp_path, "from json import nothing\n")) == ""
    assert advice_on(raised(tmp_path, "1 / 0\n")) == ""


def test_an_error_without_frames_has_no_place() -> None:
    assert place_of(ValueError("x")) == ""
    assert words_of(ValueError("x.")).splitlines()[0] == "The model's code raised ValueError: x."


def test_a_closed_log_hurts_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    print_trace(ValueError("x"))


def test_what_user_code_puts_into_an_error_does_not_keep_it_from_being_told(tmp_path: Path) -> None:
    odd = ModuleNotFoundError("x", name=5)  # type: ignore[arg-type]
    odd.__notes__ = [1, "a note"]  # type: ignore[list-item]
    assert (advice_on(odd), notes_of(odd)) == ("", ["a note"])
    odd.__notes__ = 7  # type: ignore[assignment]
    assert notes_of(odd) == []
    assert place_of(SyntaxError("x", (7, 1, 2, "y"))) == ""  # type: ignore[arg-type]


def test_a_long_chain_of_causes_is_told() -> None:
    error = ValueError(0)
    for number in range(3000):
        following = ValueError(number)
        following.__cause__, error = error, following
    assert "ValueError: 2999" in trace_of(error)
