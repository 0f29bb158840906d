"""The last lines of each model's workers: in order, within bounds, told to who listens."""

from trivium.core.observability.news import News, ServerNews
from trivium.core.observability.worker_lines import MOST_CHARACTERS, MOST_LINES, MOST_MODELS, WorkerLines
from trivium.types.observing import WorkerSaid
from trivium.types.recording import InstanceName


def test_lines_of_all_workers_of_a_model_are_kept_in_order() -> None:
    lines = WorkerLines(lambda: 5.0)
    first = lines.voice(InstanceName("m", "1", 1), "m_0")
    second = lines.voice(InstanceName("m", "2", 1), "m_0")
    first.say("a")
    second.say("b")
    first.say("c")
    assert lines.of("m") == (
        WorkerSaid(5.0, "m", "1", "m_0", "a"),
        WorkerSaid(5.0, "m", "2", "m_0", "b"),
        WorkerSaid(5.0, "m", "1", "m_0", "c"),
    )
    assert lines.of("n") == ()


def test_so_many_lines_and_characters_are_kept() -> None:
    lines = WorkerLines(lambda: 0.0)
    voice = lines.voice(InstanceName("m", "1", 1), "m_0")
    for number in range(MOST_LINES + 10):
        voice.say(str(number))
    assert [line.text for line in lines.of("m")] == [str(number) for number in range(10, MOST_LINES + 10)]
    for _ in range(100):
        voice.say("x" * 4096)
    assert sum(len(line.text) for line in lines.of("m")) <= MOST_CHARACTERS
    voice.say("y" * (MOST_CHARACTERS + 1))
    assert lines.of("m") == ()


def test_the_models_that_spoke_last_are_kept() -> None:
    lines = WorkerLines(lambda: 0.0)
    lines.voice(InstanceName("old", "1", 1), "old_0").say("a")
    lines.voice(InstanceName("older", "1", 1), "older_0").say("a")
    lines.voice(InstanceName("old", "1", 1), "old_0").say("b")
    for number in range(MOST_MODELS - 1):
        lines.voice(InstanceName(f"m{number}", "1", 1), "m").say("a")
    assert lines.of("older") == ()
    assert [line.text for line in lines.of("old")] == ["a", "b"]


def test_each_line_is_news_while_somebody_listens() -> None:
    news, heard = ServerNews(), list[News]()
    lines = WorkerLines(lambda: 0.0, news)
    voice = lines.voice(InstanceName("m", "1", 1), "m_0")
    voice.say("nobody")
    news.heard = heard.append
    voice.say("somebody")
    news.heard = None
    voice.say("nobody")
    assert heard == [WorkerSaid(0.0, "m", "1", "m_0", "somebody")]
