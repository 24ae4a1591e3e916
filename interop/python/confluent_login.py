"""confluent-kafka (librdkafka) logs in to the broker of which interop/matrix/secured.go tells."""

import json
import time

import check
import login
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

PREFIX = "confluent-login"
USER = PREFIX + "-ann"
RECORDS = 20


def settings(listener, mechanism, password=login.PASSWORD, user=USER, **more):
    config = {"bootstrap.servers": login.env(listener), "log_level": 0, "security.protocol": "sasl_plaintext"}
    if listener in ("SASL_SSL", "SSL"):
        config.update({"security.protocol": listener.lower(), "ssl.ca.location": login.env("CA")})
    if mechanism is None:
        own = login.env("CERTIFICATE")
        config.update({"ssl.certificate.location": own, "ssl.key.location": own})
    elif mechanism == "OAUTHBEARER":
        config.update({"sasl.mechanism": mechanism, "oauth_cb": lambda _: (login.token(user), time.time() + 3600)})
    else:
        config.update({"sasl.mechanism": mechanism, "sasl.username": user, "sasl.password": password})
    return {**config, **more}


def reading(group):
    return {"group.id": group, "auto.offset.reset": "earliest", "auto.commit.interval.ms": 200, "heartbeat.interval.ms": 200}


def topic(name, config):
    admin = AdminClient(config)  # It ends with the last that knows it.
    created = admin.create_topics([NewTopic(name, 1, 1)])[name]
    check.until("the topic is created", lambda: admin.poll(0.05) and False or created.done())  # Polling is what fetches tokens.
    created.result()


def write(producer, name, value):
    """Writes a record and waits until it is acknowledged."""
    told = []
    producer.produce(name, value, on_delivery=lambda error, _: told.append(error))
    check.until("the record is acknowledged", lambda: producer.poll(0.05) and told or told)
    if told[0] is not None:
        raise KafkaException(told[0])


def round_trip(name, listener, mechanism):
    config = settings(listener, mechanism)
    topic(name, config)
    p = Producer({**config, "enable.idempotence": True})
    written = [b"%d" % i for i in range(RECORDS)]
    for value in written:
        write(p, name, value)
    c = Consumer({**config, **reading(name)})
    c.subscribe([name])
    got = []

    def enough():
        got.extend((m.value(), m.offset()) for m in c.consume(RECORDS, 0.1) if m.error() is None)
        return len(got) >= RECORDS

    check.until("all read", enough)
    check.equal(written, [value for value, _ in got], "records")
    c.commit(asynchronous=False)
    check.equal(got[-1][1] + 1, c.committed([TopicPartition(name, 0)], timeout=check.PATIENCE)[0].offset, "the committed offset")
    c.close()


def refused(listener, mechanism):
    """A login that the broker does not take ends in an error that says so."""
    told = []
    config = settings(listener, mechanism, password="guessed", error_cb=told.append)
    if mechanism is None:
        config.update({"ssl.certificate.location": login.env("STRANGER"), "ssl.key.location": login.env("STRANGER")})
    if mechanism == "OAUTHBEARER":
        config["oauth_cb"] = lambda _: (login.token(USER, audience="other"), time.time() + 3600)
    p = Producer(config)

    def clear(error):
        return "unknown ca" in error.str() if mechanism is None else error.code() == KafkaError._AUTHENTICATION

    check.until("the login is refused", lambda: p.poll(0.05) and False or any(clear(e) for e in told))


def denied():
    """Who has no rights is told so by the code of the resource."""
    other = settings("SASL_SSL", "SCRAM-SHA-512", user=PREFIX + "-nobody")
    config = settings("SASL_SSL", "SCRAM-SHA-512")
    topic(PREFIX + "-denied", config)
    c = Consumer({**other, **reading(PREFIX + "-denied")})
    c.subscribe([PREFIX + "-denied"])
    errors = []

    def told():
        m = c.poll(0.05)
        if m is not None and m.error() is not None:
            errors.append(m.error())
        return errors

    check.until("the group is denied", told)
    check.equal(KafkaError.GROUP_AUTHORIZATION_FAILED, errors[0].code(), "the code of the group")
    c.close()
    try:
        write(Producer(other), PREFIX + "-denied", b"forged")
    except KafkaException as e:
        check.equal(KafkaError.TOPIC_AUTHORIZATION_FAILED, e.args[0].code(), "the code of the topic")
    else:
        raise AssertionError("the record is written")
    transactional_id_denied(other)


def transactional_id_denied(config):
    try:
        Producer({**config, "transactional.id": PREFIX + "-denied"}).init_transactions(check.PATIENCE)
    except KafkaException as e:
        check.equal(KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, e.args[0].code(), "the code of the transactional id")
    else:
        raise AssertionError("the transactional id is granted")


class Seen:
    """How often a client has logged in, and connected, by its statistics."""

    def __init__(self):
        self.logins = self.connects = 0

    def stats(self, text):
        brokers = json.loads(text)["brokers"].values()
        self.logins = sum(b["req"].get("SaslHandshake", 0) for b in brokers)
        self.connects = sum(b["connects"] for b in brokers)

    def in_place(self):
        return self.logins - self.connects


def stream(name, config, password=None):
    """Starts a stream, and returns it with what is seen of its clients. Each of them takes the password of the moment."""
    topic(name, config)
    seen = Seen(), Seen()
    p = Producer({**config, "enable.idempotence": True, "linger.ms": 0, "statistics.interval.ms": 200, "stats_cb": seen[0].stats})
    c = Consumer({**config, **reading(name), "statistics.interval.ms": 200, "stats_cb": seen[1].stats})
    c.subscribe([name])
    known = {p: config.get("sasl.password"), c: config.get("sasl.password")}

    def renew(client):
        # The thread that polls does it: another one would hold Python's lock and wait for it, and it for Python's.
        if password and known[client] != password[0]:
            known[client] = password[0]
            client.set_sasl_credentials(config["sasl.username"], password[0])

    def writes(value):
        renew(p)
        write(p, name, value)

    def reads():
        renew(c)
        # Errors pass: the client tries again by itself.
        return [m.value() for m in c.consume(100, 0.05) if m.error() is None]

    s = login.Stream(writes, reads, c.close)
    s.flows()
    return s, seen


def logs_in_again(s, seen, times):
    wanted = [x.in_place() + times for x in seen]
    s.until("both sides log in again on connections that stay", lambda: all(x.in_place() >= w for x, w in zip(seen, wanted)))
    s.flows()


def tokens_end():
    config = settings("SASL_SSL", "OAUTHBEARER")
    # librdkafka looks for old tokens once a second, so it is told of an end that is earlier.
    config["oauth_cb"] = lambda _: (login.token(USER, login.SECONDS), time.time() + login.SECONDS / 2)
    s, seen = stream(PREFIX + "-tokens", config)
    logs_in_again(s, seen, 1)
    s.end()


def password_changes():
    user, password = PREFIX + "-bea", [login.PASSWORD]
    s, seen = stream(PREFIX + "-password", settings("SHORT", "SCRAM-SHA-256", user=user), password)
    login.muster("users", "set-password", user, given="another")
    password[0] = "another"
    logs_in_again(s, seen, 2)
    s.end()
    told = []
    p = Producer(settings("SHORT", "SCRAM-SHA-256", user=user, error_cb=told.append))
    check.until("the old password is refused", lambda: p.poll(0.05) and False or any(e.code() == KafkaError._AUTHENTICATION for e in told))


check.version("confluent-kafka")
login.prepare({USER: PREFIX, PREFIX + "-bea": PREFIX, PREFIX + "-nobody": None})
checks = [(what, round_trip, f"{PREFIX}-{i}", listener, mechanism) for i, (what, listener, mechanism) in enumerate(login.ways())]
checks += login.refusals(refused)
checks += [("rights: topic, group and transactional id denied", denied),
           ("in mid-stream: tokens end", tokens_end), ("in mid-stream: the password changes", password_changes)]
check.start(checks)()
check.end()
