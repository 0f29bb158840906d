"""Which value of several sources counts, and what is said of one that cannot."""

import pytest

from trivium.settings.judging import meant_by
from trivium.settings.kinds import SWITCH, TEXT, Form, Whole
from trivium.settings.setting import Setting, Support
from trivium.settings.sources import SettingsTable, Sources
from trivium.types.errors import Code, ServeError
from trivium.types.findings import Finding, Severity
from trivium.types.sources import SourceSetting
from trivium.types.spec import Origin


def refuse(text: str) -> object:
    raise ServeError(Code.INVALID, f"{text} is unknown")


ROWS = (
    Setting("size", Whole(1, 9), "3"),
    Setting("Name"),
    Setting("unused", default="a", support=Support.REPORTED, how="nobody reads it"),
    Setting("refused", SWITCH, "false", support=Support.REFUSED, how="do it", harmless=("false",)),
    Setting("kept", Form("a word", refuse)),
    Setting("worded", Whole(refusal="{name} has {text}")),
)
STRICT = SettingsTable.of("Somebody's", "key", "docs/some.md", ROWS)
LENIENT = SettingsTable.of("Somebody's", "key", "docs/some.md", ROWS, any_case=True, has_others=True)


def sources(table: SettingsTable = STRICT, **values: str) -> Sources:
    found = Sources(table)
    found.lay(
        (name, SourceSetting(value, Origin("f", name, line)))
        for line, (name, value) in enumerate(values.items(), 1)
    )
    return found


def only(found: Sources) -> Finding:
    (finding,) = found.findings
    return finding


def test_the_later_source_goes_before_and_says_where_it_stands() -> None:
    found = sources(size="4")
    assert (found.text("size"), str(found.origin("size"))) == ("4", "f:1 (size)")
    found.lay([("size", SourceSetting(" 5 ", Origin("g", "size")))])
    assert (found.text("size"), found.number("size"), found.value("size")) == ("5", 5, 5)
    assert str(found.origin("size")) == "g (size)"
    found.lay([("size", SourceSetting("", Origin("h", "size")))])
    assert found.number("size") == 5, "an empty value is none"


def test_a_value_at_fault_leaves_the_one_before() -> None:
    found = sources(size="4")
    found.lay([("size", SourceSetting("many", Origin("g", "size", 7)))])
    assert found.number("size") == 4
    assert found.faults == (only(found),)
    assert str(only(found)) == "g:7: size: 'many'; expected a whole number from 1 to 9. Correct the value."


def test_what_nobody_gives_is_the_default() -> None:
    found = sources()
    assert (found.value("size"), found.switch("refused"), found.is_given("size")) == (3, False, False)
    assert found.origin("size").file == "Somebody's default"


@pytest.mark.parametrize(
    ("values", "severity", "text"),
    [
        ({"unused": "b"}, Severity.NOTICE, "unused=b has no effect: nobody reads it"),
        ({"refused": "true"}, Severity.ERROR, "refused=true is not supported in this version. Do it."),
        ({"kept": "x"}, Severity.ERROR, "'x': x is unknown; expected a word. Correct the value."),
        ({"worded": "x"}, Severity.ERROR, "worded has x; expected a whole number"),
        ({"sise": "1"}, Severity.ERROR, "sise is no key; expected one of Somebody's. Did you mean size?"),
        ({"SIZE": "1"}, Severity.ERROR, "SIZE is no key; expected one of Somebody's. Did you mean size?"),
        ({"zzz": "1"}, Severity.ERROR, "zzz is no key; expected one of Somebody's. Remove it; docs/some.md"),
    ],
)
def test_one_sentence_for_each_fault(values: dict[str, str], severity: Severity, text: str) -> None:
    finding = only(sources(**values))
    assert finding.severity is severity
    assert text in str(finding)


def test_a_value_that_changes_nothing_is_not_worth_a_word() -> None:
    assert sources(unused="a", refused="FALSE").findings == []


def test_other_capitals_and_other_peoples_keys_where_a_table_has_them() -> None:
    found = sources(LENIENT, SIZE="4")
    assert (found.number("size"), found.findings) == (4, [])
    finding = only(sources(LENIENT, zzz="1"))
    assert finding.severity is Severity.NOTICE
    assert finding.found == "zzz is no key of Somebody's, and has no effect"


def test_what_was_meant() -> None:
    assert meant_by("NAME", ("name", "Name")) == "name"
    assert meant_by("sise", ("name", "size")) == "size"
    assert meant_by("x", ("name", "size")) == ""
    assert Setting("a").kind is TEXT
