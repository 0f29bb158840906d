"""Runs the command `trivium`, as `python -m trivium`."""

from trivium.cli.main import main

if __name__ == "__main__":
    main(prog_name="trivium")
