"""Writes the files of this folder: `python deploy/kserve/write.py`."""

from pathlib import Path

from trivium.cli.deployment import default_image
from trivium.cli.kserve_objects import cluster_files

if __name__ == "__main__":
    for name, text in cluster_files(default_image(0)).items():
        Path(__file__).with_name(name).write_text(text)
