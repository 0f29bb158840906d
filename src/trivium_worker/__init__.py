"""The program inside a handler's worker process: standard library only, Python 3.10.

It imports nothing of `trivium`, so that it runs under any interpreter; `trivium` takes the frames' layout from here.
"""
