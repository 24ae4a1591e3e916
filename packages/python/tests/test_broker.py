"""Tests of the package as it is installed from a wheel: packages/test runs them."""

import asyncio
import contextlib
import importlib.metadata
import pathlib
import socket
import subprocess
import sys

import muster
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, ConfigResource


def round_trip(servers: str, topic: str) -> bytes:
    """Write a record and read it by a group."""
    producer = Producer({"bootstrap.servers": servers})
    producer.produce(topic, b"hello")
    assert producer.flush(30) == 0
    consumer = Consumer({"bootstrap.servers": servers, "group.id": f"g-{topic}", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    try:
        message = consumer.poll(30)
        assert message is not None and message.error() is None
        return message.value()
    finally:
        consumer.close()


def test_with_starts_and_stops_a_broker() -> None:
    with muster.Broker({"num.partitions": 3}) as broker:
        assert round_trip(broker.bootstrap_servers, broker.topic(2)) == b"hello"
        assert broker.listeners == {"PLAINTEXT": broker.bootstrap_servers}
        assert broker.version.startswith("v") and broker.http_url == ""
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        name = broker.topic(2, name="orders", settings={"retention.ms": 1000})
        assert name == "orders" and len(admin.list_topics("orders", 30).topics["orders"].partitions) == 2
    assert "stopped" in broker.log
    with pytest.raises(RuntimeError, match="not running"):
        _ = broker.bootstrap_servers


def test_async_with() -> None:
    async def use() -> bytes:
        async with muster.Broker() as broker:
            return await asyncio.to_thread(round_trip, broker.bootstrap_servers, broker.topic())

    assert asyncio.run(use()) == b"hello"


def test_data_survives_a_restart(tmp_path: pathlib.Path) -> None:
    broker = muster.Broker(data=tmp_path / "data")
    with broker:
        broker.topic(name="kept")
    with broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        assert "kept" in admin.list_topics(timeout=30).topics


def test_a_broker_that_cannot_start_says_why() -> None:
    with pytest.raises(muster.StartError, match="no.such.setting"):
        muster.Broker({"no.such.setting": 1}).start()


def test_a_topic_that_is_refused_says_why() -> None:
    with muster.Broker() as broker, pytest.raises(RuntimeError, match="retention.ms"):
        broker.topic(settings={"retention.ms": "x"})


def test_variables_of_the_shell_are_no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSTER_LOG_RETENTION_MS", "nonsense")
    monkeypatch.setenv("KAFKA_NUM_PARTITIONS", "nonsense")
    with muster.Broker() as broker:
        broker.topic()


def test_a_program_that_cannot_run_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setenv("MUSTER_BINARY", "/nowhere/muster")
    with pytest.raises(muster.StartError, match="cannot run /nowhere/muster: No such file"):
        muster.Broker().start()
    program = tmp_path / "muster"
    program.write_text("#!/bin/sh\n")
    monkeypatch.setenv("MUSTER_BINARY", str(program))
    with pytest.raises(muster.StartError, match="Permission denied.*noexec.*MUSTER_BINARY"):
        muster.Broker().start()


def test_a_platform_without_a_program_is_told_which_there_are(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setattr("muster._broker.__file__", str(tmp_path / "_broker.py"))
    with pytest.raises(muster.StartError, match="no program at .*There are wheels for Linux.*MUSTER_BINARY"):
        muster.Broker().start()


def test_no_temporary_folder_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.setenv(name, "/nowhere")
    with muster.Broker() as broker:
        broker.topic()


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(muster.StartError, match=f"in use.*{address}"):
            muster.Broker({"listeners": f"PLAINTEXT://{address}"}).start()


def test_no_broker_outlives_a_process_that_is_killed() -> None:
    code = "import muster, signal; b = muster.Broker().start(); print(b.bootstrap_servers, flush=True); signal.pause()"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, encoding="utf-8")
    assert process.stdout is not None
    host, port = process.stdout.readline().split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        process.kill()
        with contextlib.suppress(ConnectionResetError):
            assert connection.recv(1) == b""  # The broker closes it when it ends.
    process.wait()
    process.stdout.close()


def test_http() -> None:
    with muster.Broker(http=True) as broker:
        out = subprocess.run(["muster", "health", "--http", broker.http_url], capture_output=True, encoding="utf-8", check=True)
    assert out.stdout == "ok\n"


def test_the_command() -> None:
    for command in (["muster"], [sys.executable, "-m", "muster"]):
        out = subprocess.run([*command, "version"], capture_output=True, encoding="utf-8", check=True)
        assert importlib.metadata.version("muster-broker") in out.stdout
    assert subprocess.run(["muster", "nope"], capture_output=True, check=False).returncode == 2


def test_fixtures(muster_broker, kafka_bootstrap_servers: str, muster_topic: str) -> None:
    assert muster_broker.bootstrap_servers == kafka_bootstrap_servers
    assert round_trip(kafka_bootstrap_servers, muster_topic) == b"hello"


def test_settings_of_the_fixtures(kafka_bootstrap_servers: str, fresh_muster_broker) -> None:
    for servers in (kafka_bootstrap_servers, fresh_muster_broker.bootstrap_servers):
        admin = AdminClient({"bootstrap.servers": servers})
        node = next(iter(admin.list_topics(timeout=30).brokers))
        resource = ConfigResource(ConfigResource.Type.BROKER, str(node))
        described = admin.describe_configs([resource])[resource].result(30)
        assert described["num.partitions"].value == "4"  # As conftest.py has it.


def test_a_fresh_broker_has_no_topics(fresh_muster_broker, muster_broker) -> None:
    muster_broker.topic()
    admin = AdminClient({"bootstrap.servers": fresh_muster_broker.bootstrap_servers})
    assert admin.list_topics(timeout=30).topics == {}


def test_a_test_that_fails_shows_the_log_of_its_broker(tmp_path: pathlib.Path) -> None:
    test = tmp_path / "test_it.py"
    test.write_text("def test_fails(kafka_bootstrap_servers, muster_topic):\n    assert False\n\n\ndef test_passes(muster_topic):\n    pass\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(test)]
    out = subprocess.run(command, capture_output=True, encoding="utf-8", cwd=tmp_path, check=False).stdout
    assert "1 failed, 1 passed" in out and out.count("Log of muster_broker") == 1 and "broker is up" in out
