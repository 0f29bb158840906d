"""The requests that the demo of a language model prints: commands that a shell takes, with bodies that are JSON."""

import json
import shlex

import pytest

from trivium.catalogue import CATALOGUE
from trivium.cli.demo_requests import PROMPT, QUESTION, requests


@pytest.mark.parametrize("profile", CATALOGUE.profiles)
def test_each_is_one_command_with_the_question(profile: str) -> None:
    found = requests("http://localhost:1", "smollm2", profile)
    assert found
    for _, command in found:
        words = shlex.split(command)
        assert words[0] == "curl"
        assert [word for word in words if word.startswith("http://localhost:1/")]
        if "-d" in words:
            body = json.loads(words[words.index("-d") + 1])
            assert QUESTION in json.dumps(body)
        else:
            assert f"text={PROMPT}" in words
