"""The page in a real browser while things happen: a worker dies, requests fail, strangers' words are shown, a key is
asked for, pictures are dropped and answered.
"""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from tests.harness.browser import chromium, copied, page_of
from tests.harness.keys import KEYS, key_file
from tests.harness.python_models import place
from tests.harness.raw_http import infer_request, tensor
from tests.harness.server_process import ServerProcess, serve, serve_handlers

from trivium.demo import places

MARKUP = "<img src=x onerror=alert(1)>"
ENDS = (
    'input { name: "IN" data_type: TYPE_INT32 dims: 1 } output { name: "OUT" data_type: TYPE_INT32 dims: 1 }'
)
WORK = f"""
    def initialize(self, args):
        print("{MARKUP} opened", flush=True)
    def execute(self, requests):
        answers = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
            if x.flat[0] == 13:
                answers.append(pb_utils.InferenceResponse(error=pb_utils.TritonError("{MARKUP} no 13")))
            elif x.flat[0] == 14:
                import sys
                print("about to die", file=sys.stderr, flush=True)
                os.kill(os.getpid(), 11)
            else:
                answers.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", x + 1)]))
        return answers
"""
MIRROR = """
from djl_python import Input, Output

def handle(inputs):
    if inputs.is_empty():
        return None
    picture = inputs.get_as_bytes()
    answer = Output().add(picture)
    answer.add_property("Content-Type", "image/png")
    return answer
"""
NAMED = "<b>bold"
"""A folder of this name is a model of this name."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running_browser:
        yield running_browser


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("watched")
    place(root / "repository", "work", WORK, "dynamic_batching { }", ENDS)
    place(root / "repository", NAMED, WORK, "", ENDS)
    (root / "mirror").mkdir()
    (root / "mirror" / "model.py").write_text(MIRROR)
    return root


@pytest.fixture
def server(browser: Any, folder: Path, tmp_path: Path) -> Iterator[ServerProcess]:
    words = (folder / "repository", folder / "mirror")
    with serve_handlers(tmp_path / "log", *words) as running:
        yield running


def work(server: ServerProcess, number: int, name: str = "r") -> int:
    return server.ask(infer_request("work", tensor("IN", [number], [1, 1], "INT32"), id=name)).status


def opened(page: Any, place: str) -> None:
    page.evaluate("place => { location.hash = place }", place)
    page.locator("h1").first.wait_for()


@pytest.mark.parametrize("how", ["from outside", "by itself"])
def test_a_death_is_on_the_page_within_seconds_and_so_is_the_restart(
    browser: Any, server: ServerProcess, how: str
) -> None:
    with page_of(browser, server.url) as page:
        opened(page, "#/models/work/workers")
        row = page.get_by_role("row").filter(has=page.get_by_role("rowheader"))
        row.get_by_text("ready").wait_for()
        before = row.locator("td.number").nth(1).inner_text()
        began = time.monotonic()
        if how == "from outside":
            os.kill(int(before), signal.SIGKILL)
        else:
            assert work(server, 14) >= 500
        cause = "SIGKILL" if how == "from outside" else "SIGSEGV"
        page.locator(".death h3", has_text=cause).wait_for()
        seconds = time.monotonic() - began
        print(f"the death is shown after {seconds:.1f} s")
        if how == "by itself":
            page.locator(".death pre", has_text="about to die").wait_for()
        page.wait_for_function(
            "before => { const cell = document.querySelectorAll('td.number')[1];"
            " return cell && /^[0-9]+$/.test(cell.innerText) && cell.innerText !== before }",
            arg=before,
        )
        assert work(server, 1) == 200


def test_what_strangers_write_is_text_and_finished_requests_are_shown(
    browser: Any, server: ServerProcess
) -> None:
    with page_of(browser, server.url) as page:
        page.on("dialog", lambda dialog: pytest.fail(f"the page says {dialog.message}"))
        assert page.get_by_role("link", name=NAMED, exact=True).count() == 1
        opened(page, "#/models/work/requests")
        page.get_by_text("No request has ended since somebody looked").wait_for()
        assert work(server, 1, "a good one") == 200
        assert work(server, 13, MARKUP) >= 400
        page.get_by_role("heading", name="Failed").wait_for()
        page.locator(".reason", has_text=f"{MARKUP} no 13").first.wait_for()
        page.locator("code", has_text=MARKUP).first.wait_for()
        page.locator("code", has_text="a good one").first.wait_for()
        opened(page, "#/models/work/workers")
        page.locator(".log", has_text=f"{MARKUP} opened").wait_for()
        opened(page, f"#/models/{quote(NAMED)}/try")
        page.get_by_role("heading", name=NAMED).wait_for()
        assert page.locator("img[src=x], h1 b").count() == 0


def test_a_picture_is_dropped_and_one_is_answered(browser: Any, server: ServerProcess) -> None:
    with page_of(browser, server.url) as page:
        opened(page, "#/models/mirror/try")
        page.locator('input[type="file"]').set_input_files(places.pictures()[7])
        page.get_by_role("button", name="Send", exact=True).click()
        shown = page.get_by_alt_text("The picture that the model answered")
        shown.wait_for()
        page.wait_for_function("() => document.querySelector('img.picture').naturalWidth > 0")


def test_a_picture_is_dropped(browser: Any, tmp_path: Path) -> None:
    from tests.harness.server_process import running

    with running(tmp_path / "log", "demo") as demo, page_of(browser, demo.url) as page:
        opened(page, "#/models/digits_picture/try")
        page.get_by_role("radio", name="Picture", exact=True).check()
        moved = page.evaluate_handle(
            """async () => {
                const canvas = document.createElement('canvas');
                canvas.width = canvas.height = 28;
                const drawn = await new Promise((done) => canvas.toBlob(done, 'image/png'));
                const moved = new DataTransfer();
                moved.items.add(new File([drawn], 'dropped.png', { type: 'image/png' }));
                return moved;
            }"""
        )
        page.dispatch_event(".drop", "drop", {"dataTransfer": moved})
        page.get_by_alt_text("The picture dropped.png").wait_for()
        with page.expect_response(lambda answer: answer.request.method in ("POST", "PUT")) as came:
            page.get_by_role("button", name="Send", exact=True).click()
        assert came.value.ok


def test_a_key_is_asked_for_and_put_into_what_is_copied(browser: Any, folder: Path, tmp_path: Path) -> None:
    keys = key_file(tmp_path / "keys.toml")
    with serve(tmp_path / "log", "--keys", keys, folder / "repository") as server:
        context = browser.new_context()
        context.grant_permissions(["clipboard-read", "clipboard-write"], origin=server.url)
        page = context.new_page()
        page.goto(f"{server.url}/")
        page.get_by_label("Key").fill("wrong")
        page.get_by_role("button", name="Sign in").click()
        page.locator('[role="alert"]:not(:empty)').wait_for()
        page.get_by_label("Key").fill(KEYS["manage"].text)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_text("Live", exact=True).wait_for()
        opened(page, "#/models/work/try")
        line = copied(page, page.get_by_role("button", name="Copy the request as curl").click)
        assert "Authorization: Bearer YOUR_KEY" in line
        page.get_by_role("button", name="Send", exact=True).click()
        page.locator('.answer[aria-busy="false"] .good').wait_for()
        assert httpx.get(f"{server.url}/api/v1/overview").status_code == 401
        page.get_by_role("button", name="Sign out").click()
        page.get_by_role("heading", name="This server asks for a key").wait_for()
        context.close()
