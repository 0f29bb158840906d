"""Consoles on which names and texts of others are text: a terminal obeys nothing in them, and breaks no name."""

from collections.abc import Iterator
from textwrap import wrap

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderableType, RenderHook, RenderResult
from rich.segment import Segment
from rich.text import Text

from trivium.codecs.visible_text import visible


class _Visible:
    """Renders as what it holds does, its control characters as escapes."""

    def __init__(self, inner: RenderableType) -> None:
        self._inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._inner, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


class _OnlyText(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Visible(each) for each in renderables]


def only_text(console: Console) -> Console:
    """Have names and texts of others be text on a console: a terminal obeys nothing in them. Returns the console."""
    console.push_render_hook(_OnlyText())
    return console


def print_sentence(console: Console, sentence: Text) -> None:
    """Print a sentence as `lines_of` has it."""
    for line in lines_of(console, sentence):
        console.print(line, soft_wrap=True)


def lines_of(console: Console, sentence: Text) -> list[Text]:
    """Return the lines of a sentence. On a terminal they end between words, and a name that is wider than the screen is
    left to the terminal; elsewhere, where it is searched, a sentence is one line.
    """
    paragraphs = sentence.split("\n", allow_blank=True)
    if not console.is_terminal:
        return list(paragraphs)
    return [line for paragraph in paragraphs for line in _broken(paragraph, console.width)]


def _broken(paragraph: Text, width: int) -> Iterator[Text]:
    at, words = 0, paragraph.plain
    for line in wrap(words, width, break_long_words=False, break_on_hyphens=False) or [""]:
        at = words.index(line, at)
        yield paragraph[at : at + len(line)]
        at += len(line)
