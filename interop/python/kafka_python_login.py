"""kafka-python logs in to the broker of which interop/matrix/secured.go tells."""

import logging

import check
import login
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import (GroupAuthorizationFailedError, KafkaTimeoutError, TopicAuthorizationFailedError,
                          TransactionalIdAuthorizationFailedError)
from kafka.net.sasl.oauth import AbstractTokenProvider

PREFIX = "kafka-python-login"
USER = PREFIX + "-ann"
RECORDS = 20


class Tokens(AbstractTokenProvider):
    """Fetches a token for each login, and counts them."""

    def __init__(self, **about):
        self.about, self.logins = about, 0

    def token(self):
        self.logins += 1
        return login.token(USER, **self.about)


def settings(listener, mechanism, password=login.PASSWORD, user=USER, tokens=None):
    config = {"bootstrap_servers": login.env(listener), "security_protocol": "SASL_PLAINTEXT", "reconnect_backoff_max_ms": 500}
    if listener in ("SASL_SSL", "SSL"):
        config.update(security_protocol=listener, ssl_cafile=login.env("CA"))
    if mechanism is None:
        config.update(ssl_certfile=login.env("CERTIFICATE"), ssl_keyfile=login.env("CERTIFICATE"))
    elif mechanism == "OAUTHBEARER":
        config.update(sasl_mechanism=mechanism, sasl_oauth_token_provider=tokens or Tokens())
    else:
        config.update(sasl_mechanism=mechanism, sasl_plain_username=user, sasl_plain_password=password)
    return config


def topic(name, config):
    admin = KafkaAdminClient(**config)
    admin.create_topics([NewTopic(name=name, num_partitions=1, replication_factor=1)])
    admin.close()


def reader(name, config):
    c = KafkaConsumer(name, group_id=name, auto_offset_reset="earliest", fetch_max_wait_ms=100, heartbeat_interval_ms=200,
                      auto_commit_interval_ms=200, **config)
    # A leader that has not heard of the topic's partitions would give none to anybody.
    check.until("the topic is known", lambda: c.partitions_for_topic(name))
    return c


def poll(c):
    return [r for records in c.poll(100).values() for r in records]


def round_trip(name, listener, mechanism):
    config = settings(listener, mechanism)
    topic(name, config)
    p = KafkaProducer(**config)
    written = [b"%d" % i for i in range(RECORDS)]
    for sent in [p.send(name, value) for value in written]:
        sent.get(check.PATIENCE)
    p.close()
    c, got = reader(name, config), []

    def enough():
        got.extend(poll(c))
        return len(got) >= RECORDS

    check.until("all read", enough)
    check.equal(written, [r.value for r in got], "records")
    c.commit()
    check.equal(got[-1].offset + 1, c.committed(TopicPartition(name, 0)), "the committed offset")
    c.close()


def fails(kind, what, body, *args, **named):
    try:
        body(*args, **named)
    except kind as e:
        return e
    raise AssertionError(what + " goes well")


def refused(listener, mechanism):
    """A login that the broker does not take ends in an error. The client tries for as long as it may, and logs why it
    cannot; but an answer that comes together with the end of its connection it does not read, so the log may say less."""
    config = settings(listener, mechanism, password="guessed", tokens=Tokens(audience="other"))
    if mechanism is None:
        config.update(ssl_certfile=login.env("STRANGER"), ssl_keyfile=login.env("STRANGER"))
    fails(KafkaTimeoutError, "the login", KafkaProducer, bootstrap_timeout_ms=2000, **config)


def denied():
    """Who has no rights is told so by the error of the resource."""
    name, other = PREFIX + "-denied", settings("SASL_SSL", "SCRAM-SHA-512", user=PREFIX + "-nobody")
    topic(name, settings("SASL_SSL", "SCRAM-SHA-512"))
    p = KafkaProducer(**other)
    fails(TopicAuthorizationFailedError, "writing", lambda: p.send(name, b"forged").get(check.PATIENCE))
    c = KafkaConsumer(group_id=name, **other)
    fails(GroupAuthorizationFailedError, "asking for offsets", c.committed, TopicPartition(name, 0))
    fails(TransactionalIdAuthorizationFailedError, "a transaction",
          lambda: KafkaProducer(transactional_id=name, **other).init_transactions())


def tokens_end():
    name, tokens = PREFIX + "-tokens", [Tokens(seconds=login.SECONDS), Tokens(seconds=login.SECONDS)]
    writing, reading = (settings("SASL_SSL", "OAUTHBEARER", tokens=t) for t in tokens)
    topic(name, settings("SASL_SSL", "OAUTHBEARER"))
    p, c = KafkaProducer(**writing), reader(name, reading)
    s = login.Stream(lambda value: p.send(name, value).get(check.PATIENCE), lambda: [r.value for r in poll(c)], c.close)
    s.flows()
    wanted = [t.logins + 1 for t in tokens]
    s.until("both sides log in again", lambda: all(t.logins >= w for t, w in zip(tokens, wanted)))
    s.flows()
    s.end()
    p.close()


def password_changes():
    """Whoever is logged in goes on, as with Kafka; who comes with the old password does not get in."""
    user = PREFIX + "-bea"
    name, config = PREFIX + "-password", settings("SASL_SSL", "SCRAM-SHA-256", user=user)
    topic(name, config)
    p, c = KafkaProducer(**config), reader(name, config)
    s = login.Stream(lambda value: p.send(name, value).get(check.PATIENCE), lambda: [r.value for r in poll(c)], c.close)
    s.flows()
    login.muster("users", "set-password", user, given="another")
    s.flows()
    fails(KafkaTimeoutError, "the old password", KafkaProducer, bootstrap_timeout_ms=2000, **config)
    later = KafkaConsumer(**dict(config, sasl_plain_password="another"))
    check.until("the new password", lambda: name in later.topics())
    later.close()
    s.flows()
    s.end()
    p.close()


logging.getLogger("kafka").setLevel(logging.CRITICAL)  # It tells of every connection that ends.
check.version("kafka-python")
login.prepare({USER: PREFIX, PREFIX + "-bea": PREFIX, PREFIX + "-nobody": None})
checks = [(what, round_trip, f"{PREFIX}-{i}", listener, mechanism) for i, (what, listener, mechanism) in enumerate(login.ways())]
checks += login.refusals(refused)
checks += [("rights: topic, group and transactional id denied", denied), ("in mid-stream: tokens end", tokens_end),
           ("in mid-stream: the password changes", password_changes)]
check.start(checks)()
check.end()
