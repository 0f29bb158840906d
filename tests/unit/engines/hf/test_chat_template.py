"""A chat template is tried before anybody chats."""

import json

import pytest

from trivium.engines.hf.chat_template import template_fault, template_of

pytest.importorskip("jinja2")
GOOD = "{% for m in messages %}<|{{ m['role'] }}|>{{ m.content }}{{ eos_token }}{% endfor %}"


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        GOOD + "{% if add_generation_prompt %}{{ bos_token + 'x' }}{% endif %}",
        "{{ raise_exception('a system message comes first') }}",
        "{{ strftime_now('%d %b %Y') }}{{ messages | tojson(indent=2) }}",
        "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% break %}{% endfor %}",
        "{%- if tools is not none %}{{ tools | length }}{% endif -%}",
        "",
    ],
)
def test_a_template_that_writes_a_chat_has_no_fault(text):
    assert template_fault("t.jinja", text, {"eos_token": {"content": "</s>"}}) == ""


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (
            "{{ bos_token }}\n{% for m in messages %}x",
            2,
            "is no template of Jinja: Unexpected end of template",
        ),
        ("a\nb\n{% endfor %}", 3, "is no template of Jinja: Encountered unknown tag 'endfor'"),
        ("a\n{{ nothing.at.all }}", 2, "cannot write a chat of one message: .*'nothing' is undefined"),
        ("{{ 1 / 0 }}", 1, "ZeroDivisionError"),
        ("{{ ''.__class__.__mro__[1].__subclasses__() }}", 1, "unsafe"),
        ("x\n{{ ('a' * 10_000_000_000) | length }}", 2, "MemoryError"),
        ("{{ messages | nofilter }}", 1, "No filter named 'nofilter'"),
    ],
)
def test_a_fault_is_told_with_its_line_and_what_jinja_says(text, line, words):
    fault = template_fault("t.jinja", text, {})
    assert fault.startswith(f"The chat template t.jinja:{line} ")
    assert pytest.importorskip("re").search(words, fault), fault
    assert "expected a template that writes messages" in fault
    assert "chats are refused, and prompts are served" in fault


def test_a_template_is_found_in_its_file_or_in_the_tokenizers(tmp_path):
    assert template_of(tmp_path, {}) == (f"{tmp_path / 'tokenizer_config.json'} (chat_template)", "")
    several = [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]
    assert template_of(tmp_path, json.loads(json.dumps({"chat_template": several})))[1] == "d"
    assert template_of(tmp_path, {"chat_template": "x"})[1] == "x"
    (tmp_path / "chat_template.jinja").write_text("file")
    assert template_of(tmp_path, {"chat_template": "x"}) == (str(tmp_path / "chat_template.jinja"), "file")
