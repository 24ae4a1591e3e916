"""Starts and stops brokers."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import threading
import uuid
from collections import deque
from collections.abc import Mapping
from types import TracebackType
from typing import Any

# How many lines of a broker's log are kept.
_LOG_LINES = 10_000
# A broker that is told to stop writes down what it has; in memory that takes milliseconds.
_STOP_SECONDS = 30.0


class StartError(RuntimeError):
    """A broker did not start. The message has the end of its log."""


def binary() -> str:
    """Return the path of the program: $MUSTER_BINARY, or the one in this package."""
    other = os.environ.get("MUSTER_BINARY")
    if other:
        return other
    name = "muster.exe" if sys.platform == "win32" else "muster"
    path = pathlib.Path(__file__).with_name("bin") / name
    if not path.is_file():
        raise StartError(
            f"there is no program at {path}: the package was not installed from a wheel for this platform. There are wheels for "
            "Linux, macOS and Windows, each for x86-64 and ARM64. Or set MUSTER_BINARY to the path of a muster program"
        )
    return str(path)


class Broker:
    """A broker in memory, on a free port of 127.0.0.1.

    It runs from ``start`` to ``stop``, or inside of ``with`` and ``async with``.

    ``settings`` are Kafka's broker settings, as ``{"num.partitions": 6}``. ``data`` is a folder
    to keep records in instead of memory. ``http`` turns on the console and the HTTP API, at
    ``http_url``. ``timeout`` is how many seconds a start may take.
    """

    def __init__(
        self,
        settings: Mapping[str, object] | None = None,
        *,
        data: str | os.PathLike[str] | None = None,
        http: bool = False,
        timeout: float = 60.0,
    ) -> None:
        self._settings = dict(settings or {})
        self._data = data
        self._http = http
        self._timeout = timeout
        self._process: subprocess.Popen[str] | None = None
        self._log: deque[str] = deque(maxlen=_LOG_LINES)
        self._reader: threading.Thread | None = None
        self._ready: dict[str, Any] = {}

    def start(self) -> Broker:
        """Start the broker. Clients can connect when this returns."""
        if self._process is not None:
            raise RuntimeError("the broker is running")
        self._log.clear()
        # Variables of the shell would be settings of the broker.
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("MUSTER_", "KAFKA_"))}
        options: dict[str, Any] = {}
        if sys.platform == "win32":
            options["creationflags"] = subprocess.CREATE_NEW_PROCESS_GROUP
        else:
            options["start_new_session"] = True  # Ctrl-C is for the tests, which stop it.
        command = self._command()
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                encoding="utf-8",
                errors="replace",
                **options,
            )
        except OSError as error:
            raise StartError(
                f"cannot run {command[0]}: {error.strerror}. Is it for this platform, may this user run it, and does its file "
                "system let programs run (noexec)? Set MUSTER_BINARY to the path of another muster program"
            ) from error
        self._reader = threading.Thread(target=self._read_log, args=(self._process,), daemon=True)
        self._reader.start()
        try:
            self._ready = json.loads(self._first_line(self._process))
        except BaseException:
            self.stop()
            raise
        return self

    def _command(self) -> list[str]:
        command = [binary(), "serve", "--ready", "--until-eof"]
        command += ["--http", "127.0.0.1:0" if self._http else "off"]
        if self._data is None:
            command += ["--store", "mem"]
        else:
            command += ["--store", "disk", "--data", os.fspath(self._data)]
        if "listeners" not in self._settings:
            command += ["--listen", "127.0.0.1:0"]
        for name, value in self._settings.items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            command += ["--set", f"{name}={text}"]
        return command

    def _read_log(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        for line in process.stderr:  # Or the broker would wait for a reader.
            self._log.append(line)

    def _first_line(self, process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        timer = threading.Timer(self._timeout, process.kill)
        timer.daemon = True
        timer.start()
        try:
            line = process.stdout.readline()
        finally:
            timer.cancel()
        if line:
            return line
        code = process.wait()
        if self._reader is not None:
            self._reader.join()
        raise StartError(f"the broker did not start within {self._timeout:g} s or ended (exit code {code}):\n{self.log}")

    def stop(self) -> None:
        """Stop the broker. What it kept in memory is gone."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        try:
            process.stdin.close()
        except OSError:
            pass  # It has ended by itself.
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if self._reader is not None:
            self._reader.join()
        process.stdout.close()
        process.stderr.close()

    @property
    def bootstrap_servers(self) -> str:
        """What clients connect to, as host:port."""
        self._must_run()
        return str(self._ready["listeners"][0]["advertised"])

    @property
    def listeners(self) -> dict[str, str]:
        """The advertised address of each listener, by its name."""
        self._must_run()
        return {listener["name"]: listener["advertised"] for listener in self._ready["listeners"]}

    @property
    def http_url(self) -> str:
        """Where the console and the HTTP API are; empty without ``http=True``."""
        self._must_run()
        return str(self._ready["http"])

    @property
    def pid(self) -> int:
        """The process id of the broker."""
        self._must_run()
        return int(self._ready["pid"])

    @property
    def version(self) -> str:
        """The version of the broker."""
        self._must_run()
        return str(self._ready["version"])

    @property
    def log(self) -> str:
        """The last lines of the broker's log, also after it has stopped."""
        return "".join(list(self._log))

    def _must_run(self) -> None:
        if self._process is None:
            raise RuntimeError("the broker is not running")

    def topic(self, partitions: int = 1, *, name: str | None = None, settings: Mapping[str, object] | None = None) -> str:
        """Create a topic and return its name, by default one that there never was."""
        name = name or f"topic-{uuid.uuid4().hex[:12]}"
        command = [binary(), "topics", "create", name, "--partitions", str(partitions), "--broker", self.bootstrap_servers]
        for setting, value in (settings or {}).items():
            command += ["--config", f"{setting}={value}"]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("MUSTER_")}
        done = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
        return name

    def __enter__(self) -> Broker:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    async def __aenter__(self) -> Broker:
        import asyncio  # Here, since most do not need it.

        return await asyncio.to_thread(self.start)

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        import asyncio

        await asyncio.to_thread(self.stop)
