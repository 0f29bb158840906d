#!/bin/sh
# The first process of the image. tini buries processes that lost their parent, and hands signals on.
exec tini -s -- /opt/trivium/bin/python -P -m trivium.cli.container "$@"
