"""Overrides the settings of the package's fixtures, as a project would."""

import pytest


@pytest.fixture(scope="session")
def muster_settings() -> dict[str, object]:
    return {"num.partitions": 4}
