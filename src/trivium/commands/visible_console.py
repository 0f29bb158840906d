"""Consoles on which names and texts of others are text: a terminal obeys nothing in them."""

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderableType, RenderHook, RenderResult
from rich.segment import Segment

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
