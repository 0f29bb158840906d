"""Ask the real TorchServe everything and write down what it answers: `original.json` and `built_in.json`, which
`make original` makes.

Run with the name of a setting, or `built-in`, to ask that one alone, and keep what is known of the others.
"""

import json
import sys
import tempfile
from pathlib import Path

from tests.e2e.torchserve_beside.archives import write_store
from tests.e2e.torchserve_beside.built_in import MODELS, asked_about, questions, write_built_in
from tests.e2e.torchserve_beside.original import original
from tests.e2e.torchserve_beside.play import Player
from tests.e2e.torchserve_beside.servers import SETTINGS

RECORD = Path(__file__).with_name("original.json")
BUILT_IN = "built-in"
OF_BUILT_IN = Path(__file__).with_name("built_in.json")


def main(names: list[str]) -> None:
    """Ask the settings of these names, or all of them."""
    if not names or BUILT_IN in names:
        record_built_in()
        if names == [BUILT_IN]:
            return
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


def record_built_in() -> None:
    """Ask about pictures and texts."""
    with tempfile.TemporaryDirectory(prefix="original") as place:
        folder = Path(place)
        store = write_built_in(folder / "store")
        words = [f"{model}.mar" for model in MODELS]
        text = "disable_token_authorization=true\ndefault_workers_per_model=1\ndefault_response_timeout=60\n"
        with original(folder, store, text, "--ncs", "--models", *words) as addresses:
            url = f"http://127.0.0.1:{addresses.port('inference')}"
            for model in MODELS:
                Player(addresses, folder).wait(model)
            found = {name: asked_about(url, model, data) for name, model, data in questions()}
    print(f"{BUILT_IN}: {len(found)} answers")
    OF_BUILT_IN.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
