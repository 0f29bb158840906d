"""The parts of the manual that are made from code say what the code says."""

import importlib.util
from pathlib import Path


def test_no_page_is_out_of_date():
    place = Path(__file__).parents[3] / "docs" / "make.py"
    spec = importlib.util.spec_from_file_location("make_docs", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    stale = [str(page.relative_to(place.parents[1])) for page in module.outdated()]
    assert not stale, f"out of date: {', '.join(stale)}; run `make docs`, which writes them, and commit them"
