"""How hypothesis runs in every test: see `tests.harness.properties`."""

from tests.harness import properties

properties.register()
