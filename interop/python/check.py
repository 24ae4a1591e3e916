"""Runs checks and says what came of them, in the form that interop/matrix reads:
a line "version V", a line "ok GROUP: NAME" for each check that passed, and an exit
code other than 0 if one did not."""

import concurrent.futures
import importlib.metadata
import os
import sys
import time
import traceback

PATIENCE = 60
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
failures = []


def version(package):
    print("version", importlib.metadata.version(package), flush=True)


def run(name, body, *args):
    try:
        body(*args)
        print("ok", name, flush=True)
    except BaseException:
        failed(name)


def failed(name):
    failures.append(name)
    print("FAILED", name, flush=True)
    traceback.print_exc(file=sys.stdout)


def start(checks):
    """Starts checks, (name, body, arguments), that run at the same time, and returns
    what waits for them and says what came of them, in their order."""
    pool = concurrent.futures.ThreadPoolExecutor(len(checks))
    results = [(name, pool.submit(body, *args)) for name, body, *args in checks]

    def wait():
        for name, result in results:
            run(name, result.result)

    return wait


def end():
    """Ends the program. Threads that a failed check left behind do not keep it."""
    sys.stdout.flush()
    os._exit(1 if failures else 0)


def equal(want, got, what):
    assert want == got, f"{what}: want {want!r}, got {got!r}"


def same(written, got):
    """Compares records, and shows only the first that differ."""
    for want, have in zip(written, sorted(got, key=lambda r: r[3])):
        equal(want, have, "a record")
    equal(len(written), len(got), "records")


def until(what, condition):
    """Waits until a condition holds, and returns what it returned."""
    deadline = time.monotonic() + PATIENCE
    while not (result := condition()):
        assert time.monotonic() < deadline, f"after {PATIENCE} s still not: {what}"
        time.sleep(0.02)
    return result


def records(n, partitions):
    """Records to write: (partition, key, value, timestamp, headers)."""
    now = int(time.time() * 1000)
    return [
        (i % partitions, b"key%d" % (i % 7), b"value%d" % i + b"x" * i, now + i, [("number", b"%d" % i), ("empty", b"")])
        for i in range(n)
    ]
