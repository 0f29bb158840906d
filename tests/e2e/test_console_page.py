"""The page in a real browser, against the demo and against a folder with a broken model: it is drawn for, read, mended,
asked with every kind of body, and used by keyboard alone. With CONSOLE_PICTURES=FOLDER it makes the pictures of the
documentation.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures import models
from tests.harness.browser import by_keyboard, chromium, copied, page_of, picture, serious_faults
from tests.harness.language_models import write
from tests.harness.server_process import ServerProcess, running, serve_handlers

from trivium.demo import places

SEVEN = ((0.25, 0.15), (0.75, 0.15), (0.4, 0.9))
WORDS = """
from djl_python import Input, Output

def handle(inputs):
    if inputs.is_empty():
        return None
    print("a line of <b>words</b>", flush=True)
    return Output().add_as_json({"words": len(inputs.get_as_json()["text"].split())})
"""
PAGES = (
    *("#/", "#/server", "#/api", "#/models/digits", "#/models/digits/try", "#/models/digits_djl/try"),
    *("#/models/digits_picture/try", "#/models/digits/requests", "#/models/digits_djl/workers"),
    *("#/models/digits/configuration", "#/models/digits/versions"),
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running_browser:
        yield running_browser


@pytest.fixture(scope="module")
def demo(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running(tmp_path_factory.mktemp("demo") / "log", "demo") as server:
        yield server


@pytest.fixture(scope="module")
def folder(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A handler that breaks as it is read, models of texts and of tensors, a language model."""
    root = tmp_path_factory.mktemp("models")
    (root / "words").mkdir()
    (root / "words" / "model.py").write_text(f"import no_such_library\n{WORDS}")
    models.text(root / "repository", "text")
    models.sum_and_difference(root / "repository", "sums")
    write(root / "chatty", "llama")
    return root


@pytest.fixture
def mixed(folder: Path, tmp_path: Path) -> Iterator[ServerProcess]:
    with serve_handlers(
        tmp_path / "log", folder / "words", folder / "repository", folder / "chatty"
    ) as server:
        yield server


def drawn(page: Any, points: tuple[tuple[float, float], ...] = SEVEN) -> None:
    """Draw one line on the pad with the mouse."""
    box = page.locator(".pad canvas").bounding_box()
    places_of = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in points]
    page.mouse.move(*places_of[0])
    page.mouse.down()
    for place in places_of[1:]:
        page.mouse.move(*place, steps=8)
    page.mouse.up()


def best(page: Any) -> str:
    return str(page.locator(".best b").inner_text())


def sent(page: Any) -> str:
    """The answer as the page shows it, once the button was pressed."""
    with page.expect_response(lambda answer: answer.request.method in ("POST", "PUT")) as came:
        page.get_by_role("button", name="Send", exact=True).click()
    assert came.value.ok
    page.locator('.answer[aria-busy="false"] .raw pre').wait_for(state="attached")
    return shown(page)


def shown(page: Any) -> str:
    return str(page.locator(".answer .raw pre").text_content())


def opened(page: Any, place: str) -> None:
    """Go to a part of the page, as a link in it would."""
    page.evaluate("place => { location.hash = place }", place)
    page.locator("h1").first.wait_for()


def chosen(page: Any, kind: str) -> None:
    page.get_by_role("radio", name=kind, exact=True).check()


def by_curl(page: Any, folder: Path) -> str:
    """What the request answers that the page gives to copy, in a shell."""
    line = copied(page, page.get_by_role("button", name="Copy the request as curl").click)
    return subprocess.run(["sh", "-c", line], cwd=folder, capture_output=True, text=True, check=True).stdout


def test_a_seven_is_drawn_and_read_and_its_request_copied(
    browser: Any, demo: ServerProcess, tmp_path: Path
) -> None:
    with page_of(browser, demo.url) as page:
        page.get_by_role("link", name="digits", exact=True).click()
        page.get_by_role("link", name="Try it").click()
        drawn(page)
        page.locator(".best").wait_for()
        assert best(page) == "7"
        assert json.loads(by_curl(page, tmp_path)) == json.loads(shown(page))
        page.locator(".pad canvas").blur()
        page.evaluate("scrollTo(0, 0)")
        picture(page, "console-try", {str(places.models()): "models"})
        opened(page, "#/")
        page.wait_for_function("() => /Requests\\n[1-9]/.test(document.querySelector('.figures')?.innerText)")
        picture(page, "console-overview")


def test_a_seven_is_drawn_by_keyboard_alone(browser: Any, demo: ServerProcess) -> None:
    with page_of(browser, demo.url) as page:
        by_keyboard(page, 'a[href="#/models/digits"]')
        page.keyboard.press("Enter")
        page.locator("h1", has_text="digits").wait_for()
        by_keyboard(page, 'a[href="#/models/digits/try"]')
        page.keyboard.press("Enter")
        page.locator(".pad canvas").wait_for()
        by_keyboard(page, ".pad canvas")
        for key in [
            " ",
            *["ArrowRight"] * 4,
            *["ArrowDown", "ArrowDown", "ArrowLeft"] * 2,
            *["ArrowDown"] * 2,
            " ",
        ]:
            page.keyboard.press(key)
        page.locator(".best").wait_for()
        assert best(page) == "7"


def test_a_picture_is_sent_as_a_file_and_as_a_drawing(
    browser: Any, demo: ServerProcess, tmp_path: Path
) -> None:
    seven = places.pictures()[7]
    (tmp_path / seven.name).write_bytes(seven.read_bytes())
    with page_of(browser, demo.url) as page:
        opened(page, "#/models/digits_picture/try")
        page.locator("input[type=file]").set_input_files(seven)
        answer = sent(page)
        assert best(page) == "7"
        assert json.loads(by_curl(page, tmp_path)) == json.loads(answer)
        chosen(page, "Draw")
        drawn(page)
        page.locator(".best").wait_for()
        assert best(page) == "7"


def test_a_handler_gets_a_file_as_its_body(browser: Any, demo: ServerProcess) -> None:
    with page_of(browser, demo.url) as page:
        opened(page, "#/models/digits_djl/try")
        page.get_by_label("Content type").fill("image/png")
        page.get_by_label("or a file").set_input_files(places.pictures()[7])
        assert "7" in sent(page)


def test_a_broken_model_is_read_mended_and_loaded(browser: Any, mixed: ServerProcess, folder: Path) -> None:
    file = folder / "words" / "model.py"
    broken = file.read_text()
    with page_of(browser, mixed.url) as page:
        row = page.locator("tr", has=page.get_by_role("link", name="words", exact=True))
        assert "failed" in row.inner_text()
        page.get_by_text("no_such_library").first.wait_for()
        picture(page, "console-failed", {str(folder): "models", sys.executable: "python"})
        page.get_by_role("link", name="words", exact=True).click()
        trouble = page.locator(".trouble")
        trouble.wait_for()
        assert "no_such_library" in trouble.inner_text()
        assert "What to do" in trouble.inner_text()
        file.write_text(WORDS)
        try:
            page.get_by_role("button", name="Load", exact=True).click()
            page.locator(".title .state.good", has_text="ready").wait_for()
            page.get_by_role("link", name="Try it").click()
            page.get_by_label("Body").fill('{"text": "to be or not to be"}')
            assert json.loads(sent(page)) == {"words": 6}
            page.get_by_role("link", name="Workers").click()
            page.locator("pre.log", has_text="a line of <b>words</b>").wait_for()
        finally:
            file.write_text(broken)


def test_tensors_texts_and_a_free_body_are_sent(browser: Any, mixed: ServerProcess, tmp_path: Path) -> None:
    with page_of(browser, mixed.url) as page:
        opened(page, "#/models/sums/try")
        page.get_by_role("button", name="Random").first.click()
        answer = json.loads(sent(page))
        assert answer["outputs"]
        assert json.loads(by_curl(page, tmp_path)) == answer
        chosen(page, "Body")
        assert json.loads(sent(page))["outputs"]
        opened(page, "#/models/text/try")
        page.get_by_label("Text", exact=True).last.fill('it\'s "quoted" <b>')
        answer = json.loads(sent(page))
        assert json.loads(by_curl(page, tmp_path)) == answer


def test_a_request_is_copied_where_the_browser_has_no_clipboard(browser: Any, demo: ServerProcess) -> None:
    with page_of(browser, demo.url) as page:
        opened(page, "#/models/digits_djl/try")
        page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
        page.get_by_role("button", name="Copy the request as curl").click()
        page.get_by_text("Copied", exact=True).wait_for()
        page.get_by_label("Body").fill("")
        page.get_by_label("Body").press("Control+V")
        assert page.get_by_label("Body").input_value().startswith("curl -s http://")


def test_a_chat_is_streamed(browser: Any, mixed: ServerProcess, tmp_path: Path) -> None:
    with page_of(browser, mixed.url) as page:
        opened(page, "#/models/chatty/try")
        page.get_by_label("Tokens at most").fill("12")
        line = copied(page, page.get_by_role("button", name="Copy the request as curl").click)
        page.get_by_role("button", name="Send", exact=True).click()
        page.get_by_text("Status 200").wait_for()
        written = page.locator(".messages .assistant p").text_content()
        streamed = subprocess.run(
            ["sh", "-c", line], cwd=tmp_path, capture_output=True, check=True
        ).stdout.decode()
        parts = [json.loads(one[6:]) for one in streamed.splitlines() if one.startswith("data: {")]
        words = [part["choices"][0]["delta"].get("content") or "" for part in parts if part["choices"]]
        assert written
        assert "".join(words) == written


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_serious_is_in_the_way_of_anybody(
    browser: Any, demo: ServerProcess, scheme: str, width: int
) -> None:
    faults = []
    with page_of(browser, demo.url, scheme, width) as page:
        for place in PAGES:
            opened(page, place)
            if place.endswith("digits/try"):
                drawn(page)
                page.locator(".best").wait_for()
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{place} is too wide"
            faults += serious_faults(page)
        if width == 390:
            opened(page, "#/models/digits")
            picture(page, f"console-narrow-{scheme}", {str(places.models()): "models"})
    assert not faults, "\n".join(faults)
