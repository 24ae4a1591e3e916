"""A Kafka-compatible broker in one program, for tests.

    with muster.Broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})

Each broker is a process of its own, in memory and on a free port, and ends with the
``with`` block, or with this process, however that ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._broker import Broker, StartError, binary

__all__ = ["Broker", "StartError", "binary"]


def __getattr__(name: str) -> object:
    # The command muster starts through this package and needs none of it.
    if name in __all__:
        from . import _broker

        return getattr(_broker, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
