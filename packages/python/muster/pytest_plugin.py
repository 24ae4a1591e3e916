"""Fixtures for pytest, which finds them by itself."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ._broker import Broker


@pytest.fixture(scope="session")
def muster_settings() -> dict[str, object]:
    """Broker settings for the brokers of the other fixtures; override it in conftest.py."""
    return {}


@pytest.fixture(scope="session")
def muster_broker(muster_settings: dict[str, object]) -> Iterator[Broker]:
    """A broker for all tests (with pytest-xdist: of a worker)."""
    from ._broker import Broker

    with Broker(muster_settings) as broker:
        yield broker


@pytest.fixture
def fresh_muster_broker(muster_settings: dict[str, object]) -> Iterator[Broker]:
    """A broker for this test alone."""
    from ._broker import Broker

    with Broker(muster_settings) as broker:
        yield broker


@pytest.fixture
def muster_topic(muster_broker: Broker) -> str:
    """A new topic of one partition on ``muster_broker``."""
    return muster_broker.topic()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what the brokers of a test that fails have logged."""
    report = yield
    if report.failed:
        for name in ("muster_broker", "fresh_muster_broker"):
            broker = getattr(item, "funcargs", {}).get(name)
            if broker is not None:
                report.sections.append((f"Log of {name}", broker.log))
    return report


@pytest.fixture(scope="session")
def kafka_bootstrap_servers(muster_broker: Broker) -> str:
    """The address of ``muster_broker``, as clients take it."""
    return muster_broker.bootstrap_servers
