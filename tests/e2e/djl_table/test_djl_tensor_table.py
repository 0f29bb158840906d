"""The rows of binary mode and of translators, each table on a server of its own, judged as those of the first table."""

from collections.abc import Iterator

import pytest
from tests.e2e.djl_table import tensor_rows, translator_rows
from tests.e2e.djl_table.differences import ACCEPTED, ACCEPTED_TENSORS
from tests.e2e.djl_table.rows import Row
from tests.e2e.djl_table.test_djl_table import check
from tests.harness.djl_serving import DjlServing, djl_serving

pytest.importorskip("torch")
TENSORS, TRANSLATED = tensor_rows.tensor_rows(), translator_rows.translator_rows()
ROWS = [*TENSORS, *TRANSLATED]
JUDGED = [row for row in ROWS if row.name not in ACCEPTED_TENSORS]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, DjlServing]]:
    root = tmp_path_factory.mktemp("tensors")
    plain = tensor_rows.lay_out(root / "plain")
    pictures = translator_rows.lay_out(root / "translated")
    with (
        djl_serving(root / "plain.log", "-s", plain, split=True) as first,
        djl_serving(root / "translated.log", "-s", pictures, split=True) as second,
    ):
        yield {"9": first, "10": second}


def judge(servers: dict[str, DjlServing], row: Row) -> None:
    check(servers[row.section.partition(".")[0]], row)


@pytest.mark.parametrize("row", JUDGED, ids=lambda row: row.name)
def test_the_row_holds(servers: dict[str, DjlServing], row: Row) -> None:
    judge(servers, row)


def test_the_tables_are_large_enough_and_no_row_is_there_twice() -> None:
    assert len(ROWS) >= 120
    assert len([row for row in ROWS if row.status >= 400]) >= 40
    assert len({row.name for row in ROWS}) >= len(ROWS) - 5
    assert {row.section for row in ROWS} == {"9.1", "9.2", "9.3", "9.4", "9.5", "10"}


def test_few_differences_are_accepted_and_each_is_one(servers: dict[str, DjlServing]) -> None:
    assert len(ACCEPTED) + len(ACCEPTED_TENSORS) <= 15
    for row in ROWS:
        if row.name in ACCEPTED_TENSORS:
            with pytest.raises(AssertionError):
                judge(servers, row)
    assert not ACCEPTED_TENSORS.keys() - {row.name for row in ROWS}
