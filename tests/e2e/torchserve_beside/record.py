"""Ask the real TorchServe everything and write down what it answers: `original.json`, which `make original` makes.

Run with the name of a setting to ask that one alone, and keep what is known of the others.
"""

import json
import sys
import tempfile
from pathlib import Path

from tests.e2e.torchserve_beside.archives import write_store
from tests.e2e.torchserve_beside.original import original
from tests.e2e.torchserve_beside.play import Player
from tests.e2e.torchserve_beside.servers import SETTINGS

RECORD = Path(__file__).with_name("original.json")


def main(names: list[str]) -> None:
    """Ask the settings of these names, or all of them."""
    record = json.loads(RECORD.read_text()) if names else {}
    for setting in SETTINGS:
        if names and setting.name not in names:
            continue
        with tempfile.TemporaryDirectory(prefix="original") as place:
            folder = Path(place)
            store = write_store(folder / "store")
            models = [f"{model}.mar" for model in setting.models]
            with original(folder, store, setting.text, "--ncs", "--models", *models) as addresses:
                record[setting.name] = Player(addresses, folder).play(setting)
        print(f"{setting.name}: {len(record[setting.name])} answers")
    RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
