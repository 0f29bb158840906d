"""Every path that the demo names is there, in the package."""

from trivium.demo import places


def test_what_it_names_is_there() -> None:
    assert [folder.name for folder in places.models().iterdir()] == ["digits"]
    assert places.bare_model().is_file()
    assert len(places.pictures()) == 10
    assert all(path.is_file() for path in places.pictures())
