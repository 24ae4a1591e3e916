"""What programs of clients that log in have in common: the broker of which interop/matrix/secured.go tells, users there, and
streams of records that go on while logins end."""

import concurrent.futures
import json
import os
import subprocess
import tempfile
import threading
import time
import urllib.request

import check

MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
PASSWORD = "über, =2C"  # Letters and signs that mechanisms treat in ways of their own.
SECONDS = 6  # that a token lasts whose end is waited for


def env(name):
    return os.environ["MUSTER_MATRIX_" + name]


def muster(*args, given=""):
    """Runs a command of muster as the user who may do everything."""
    with tempfile.NamedTemporaryFile("w") as password:
        password.write("admin-secret")
        password.flush()
        logged_in = {"MUSTER_BROKER": env("SASL_PLAINTEXT"), "MUSTER_USER": "admin", "MUSTER_PASSWORD_FILE": password.name}
        done = subprocess.run([os.path.join("bin", "muster"), *args], input=given, text=True, env={**os.environ, **logged_in},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=check.PATIENCE)
    assert done.returncode == 0, f"muster {' '.join(args)}: {done.stdout}"


def token(user, seconds=3600, audience="muster"):
    """Fetches a token."""
    url = f"{env('TOKENS')}?sub={user}&for={seconds}s&aud={audience}"
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=check.PATIENCE) as answer:
        return json.load(answer)["access_token"]


def ways():
    """All ways to log in: what they are called, the listener, and the mechanism if it is not a certificate."""
    for listener, name in ("SASL_PLAINTEXT", "in plain text"), ("SASL_SSL", "over TLS"):
        for mechanism in MECHANISMS:
            yield f"login {name}: {mechanism}", listener, mechanism
    yield "login over TLS: certificate", "SSL", None


def refusals(body):
    """Checks of logins that the broker does not take: a body with a listener and a mechanism, None for a certificate."""
    wrong = {None: "a certificate of another authority", "OAUTHBEARER": "a token for another audience"}
    return [(f"refused: {wrong.get(mechanism, 'a wrong password by ' + str(mechanism))}", body, listener, mechanism)
            for _, listener, mechanism in ways() if listener != "SASL_PLAINTEXT"]


def prepare(users):
    """Makes users who may do everything with topics and groups whose names begin as said, and so may carol, who has a
    certificate."""

    def user(name, prefix):
        if name != "carol":
            muster("users", "create", name, given=PASSWORD)
        for kind in ("topic", "group") if prefix else ():
            muster("acls", "add", "--prefixed", name, "all", kind, prefix)

    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(lambda u: user(*u), [*users.items(), ("carol", next(iter(users.values())))]))


class Stream:
    """Numbers that are written one after the other, and read in a group meanwhile. write returns when a value is
    acknowledged, read returns values that have come, and close ends the reader."""

    def __init__(self, write, read, close):
        self.write, self.read, self.close = write, read, close
        self.written, self.last, self.ending, self.errors = 0, 0, False, []
        self.threads = [threading.Thread(target=self.keep, args=(f,), daemon=True) for f in (self.writes, self.reads)]
        for t in self.threads:
            t.start()

    def keep(self, f):
        try:
            f()
        except BaseException as e:
            self.errors.append(e)

    def writes(self):
        while not self.ending:
            self.write(b"%d" % (self.written + 1))
            self.written += 1
            time.sleep(0.005)

    def reads(self):
        while not self.errors and not (self.ending and not self.threads[0].is_alive() and self.last == self.written):
            for value in self.read():
                # Who loses a connection may read records again.
                assert int(value) <= self.last + 1, f"{int(value)} was read after {self.last}"
                self.last = max(self.last, int(value))
        self.close()

    def until(self, what, condition):
        check.until(what, lambda: self.errors or condition())
        self.verify()

    def flows(self):
        """Waits until more records are read."""
        enough = self.last + 20
        self.until(f"{enough} records", lambda: self.last >= enough)

    def verify(self):
        for e in self.errors:
            raise e

    def end(self):
        """Ends the stream when all that was written is read."""
        self.ending = True
        for t in self.threads:
            t.join(check.PATIENCE)
        self.verify()
        check.equal(self.written, self.last, "the last record")
