"""The file that stands for the handler `llm_api`, which is built in, since torch-model-archiver wants one."""

TEXT = '''\
"""Stands for the handler `llm_api`, which is built into Trivium: it runs that in place of this file."""


def handle(data, context):
    """Say where this archive is served."""
    raise RuntimeError("This archive names the handler llm_api, which is built into Trivium: serve it there.")
'''
FIRST_LINE = TEXT.splitlines()[0]
"""By this line the file is known, whatever an editor or an archiver makes of the rest."""
