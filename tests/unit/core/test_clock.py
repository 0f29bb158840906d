"""What the live clock calls, and in which order."""

import asyncio

from trivium.core.clock import LoopClock


def calls(script):
    """What was called on a loop that turned until nothing was left; exceptions that reached the loop."""
    called, raised = [], []

    async def main():
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda loop, context: raised.append(context["exception"]))
        script(LoopClock(loop), loop, called)
        for _ in range(5):
            await asyncio.sleep(0)

    asyncio.run(main())
    return called, raised


def test_the_last_of_a_callback_come_before_anything_else_of_the_loop():
    def script(clock, loop, called):
        def decide():
            called.append("decide")
            clock.call_last(lambda: called.append("wake a"))
            loop.call_soon(lambda: called.append("next turn"))
            clock.call_last(lambda: called.append("wake b"))
            called.append("decided")

        clock.call_soon(decide)
        loop.call_soon(lambda: called.append("beside"))

    assert calls(script)[0] == ["decide", "decided", "wake a", "wake b", "beside", "next turn"]


def test_outside_of_a_callback_it_is_called_soon():
    def script(clock, loop, called):
        clock.call_last(lambda: called.append("last"))
        called.append("now")

    assert calls(script)[0] == ["now", "last"]


def test_one_that_asks_for_another_is_not_called_for_ever():
    def script(clock, loop, called):
        def again():
            called.append("again")
            if len(called) < 3:
                clock.call_last(again)

        clock.call_soon(lambda: clock.call_last(again))

    assert calls(script)[0] == ["again"] * 3


def test_one_of_the_last_that_raises_keeps_none_of_the_others_back():
    error = ValueError("odd")

    def fail():
        raise error

    def script(clock, loop, called):
        def decide():
            clock.call_last(fail)
            clock.call_last(lambda: called.append("wake"))

        clock.call_soon(decide)

    assert calls(script) == (["wake"], [error])


def test_a_callback_that_raises_loses_nothing_of_what_was_handed_over():
    error = ValueError("odd")

    def script(clock, loop, called):
        def decide():
            clock.call_last(lambda: called.append("wake"))
            raise error

        clock.call_soon(decide)
        clock.call_soon(lambda: called.append("other"))

    assert calls(script) == (["wake", "other"], [error])
