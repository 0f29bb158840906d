"""No request names a file of code, however it spells the path."""

import pytest

from trivium.core.models.trust_policy import check_source
from trivium.types.errors import Code, ServeError
from trivium.types.sources import ModelSource


@pytest.mark.parametrize(
    "uri", ["/m/app.py", "/m/app.py//", "/m/app.py/.", "/m/app.py:M/", "https://h/app.py?x=1"]
)
def test_a_file_of_code_is_refused(uri: str) -> None:
    with pytest.raises(ServeError) as caught:
        check_source(ModelSource(uri))
    assert caught.value.code is Code.FORBIDDEN


def test_a_folder_is_left_to_its_own_rule() -> None:
    check_source(ModelSource("/m/app"))
