"""confluent-kafka (librdkafka) against the broker that the first argument names."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import check
from confluent_kafka import (Consumer, ConsumerGroupState, ConsumerGroupTopicPartitions, KafkaError,
                             KafkaException, OFFSET_BEGINNING, Producer, TopicPartition, TopicCollection)
from confluent_kafka.admin import (AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions,
                                   NewTopic, OffsetSpec, ResourceType)

BROKER = sys.argv[1]
PREFIX = "confluent-"
PARTITIONS = 4
admin = AdminClient({"bootstrap.servers": BROKER})


def done(futures):
    """Waits for all of an admin call, and returns its only result if it has one."""
    results = [f.result(timeout=30) for f in futures.values()]
    return results[0] if len(results) == 1 else results


def topic(name, partitions=PARTITIONS, **config):
    done(admin.create_topics([NewTopic(PREFIX + name, partitions, 1, config=config)]))
    return PREFIX + name


def consumer(**settings):
    config = {"bootstrap.servers": BROKER, "group.id": PREFIX + "none", "enable.auto.commit": False, "auto.offset.reset": "earliest"}
    config.update({k.replace("_", "."): v for k, v in settings.items()})
    return Consumer(config)


def write(name, n, **settings):
    """Writes records, and returns them and their offsets."""
    config = {"bootstrap.servers": BROKER, **{k.replace("_", "."): v for k, v in settings.items()}}
    written, offsets, errors = check.records(n, PARTITIONS), {}, []

    def delivered(i):
        return lambda error, message: errors.append(error) if error else offsets.update({i: message.offset()})

    p = Producer(config)
    for i, (partition, key, value, timestamp, headers) in enumerate(written):
        p.produce(name, value, key, partition, on_delivery=delivered(i), timestamp=timestamp, headers=headers)
    check.equal(0, p.flush(30), "records not delivered")
    check.equal([], errors, "errors")
    return written, offsets


def read(c, n):
    """Reads records of what is assigned."""
    got = []

    def enough():
        for m in c.consume(n, 0.1):
            assert m.error() is None, m.error()
            got.append((m.partition(), m.key(), m.value(), m.timestamp()[1], m.headers()))
        return len(got) >= n

    check.until(f"{n} records", enough)
    return got


def round_trip(name, **settings):
    t = topic(name)
    written, _ = write(t, 200, **settings)
    c = consumer()
    c.assign([TopicPartition(t, p, OFFSET_BEGINNING) for p in range(PARTITIONS)])
    got = read(c, 200)
    c.close()
    check.same(written, got)


def seek_and_pause():
    t = topic("seek")
    _, offsets = write(t, 40)
    p0, p1 = TopicPartition(t, 0, OFFSET_BEGINNING), TopicPartition(t, 1, OFFSET_BEGINNING)
    c = consumer()
    c.assign([p0, p1])
    check.equal(20, len(read(c, 20)), "records")
    c.pause([p0])
    c.seek(TopicPartition(t, 0, offsets[0]))
    c.seek(TopicPartition(t, 1, offsets[5]))
    check.equal(9, len(read(c, 9)), "records of the partition that is not paused")
    assert c.poll(0.3) is None, "a record of a paused partition"
    c.resume([p0])
    check.equal(10, len(read(c, 10)), "records of the partition that was paused")
    low, high = c.get_watermark_offsets(p0)
    assert low <= offsets[0] and high == offsets[36] + 1, f"watermarks {low} and {high}"
    c.close()


def times():
    t = topic("times")
    written, offsets = write(t, 40)
    c = consumer()
    found = c.offsets_for_times([TopicPartition(t, 0, written[8][3] - 1), TopicPartition(t, 1, written[39][3] + 1000)], timeout=30)
    check.equal(offsets[8], found[0].offset, "the offset of a time")
    check.equal(-1, found[1].offset, "the offset of a time to come")
    c.close()


def commits():
    t = topic("commits")
    _, offsets = write(t, 40)
    group = PREFIX + "commits"
    c = consumer(group_id=group)
    c.assign([TopicPartition(t, 0)])
    c.commit(offsets=[TopicPartition(t, 0, offsets[8])], asynchronous=False)
    check.equal(offsets[8], c.committed([TopicPartition(t, 0)], timeout=30)[0].offset, "the committed offset")
    c.close()
    c = consumer(group_id=group, enable_auto_commit=True, auto_commit_interval_ms=100)
    c.subscribe([t])
    check.equal(38, len(read(c, 38)), "records after the committed offset")
    c.close()
    left = done(admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]))
    check.equal({0: offsets[36] + 1, 1: offsets[37] + 1, 2: offsets[38] + 1, 3: offsets[39] + 1},
                {p.partition: p.offset for p in left.topic_partitions}, "offsets committed automatically")


class Member:
    """A consumer in a group, with a thread of its own."""

    def __init__(self, group, t, assignor, **settings):
        self.owned, self.read, self.ending = set(), [], False
        self.consumer = consumer(group_id=group, partition_assignment_strategy=assignor, enable_auto_commit=True,
                                 auto_commit_interval_ms=100, heartbeat_interval_ms=200, **settings)
        self.assignments = 0
        self.cooperative = assignor == "cooperative-sticky"
        self.consumer.subscribe([t], on_assign=self.assigned, on_revoke=self.revoked)
        self.thread = threading.Thread(target=self.poll, daemon=True)
        self.thread.start()

    def assigned(self, c, partitions):
        self.assignments += 1
        c.incremental_assign(partitions) if self.cooperative else c.assign(partitions)
        self.owned = self.owned | {p.partition for p in partitions}

    def revoked(self, c, partitions):
        c.incremental_unassign(partitions) if self.cooperative else c.unassign()
        self.owned = self.owned - {p.partition for p in partitions}

    def poll(self):
        while not self.ending:
            m = self.consumer.poll(0.1)
            if m is not None and m.error() is None:
                self.read.append(m.value())
        self.consumer.close()

    def close(self):
        self.ending = True
        self.thread.join(20)


def shared(members):
    """Waits until each partition has one owner, and each member a fair share."""
    check.until("the partitions are shared", lambda: (
        sorted(p for m in members for p in m.owned) == list(range(PARTITIONS))
        and all(len(m.owned) == PARTITIONS // len(members) for m in members)))


def come_and_go(assignor):
    t = topic("group-" + assignor)
    a = Member(t, t, assignor)
    shared([a])
    b = Member(t, t, assignor)
    shared([a, b])
    write(t, 40)
    check.until("all read", lambda: len(set(a.read + b.read)) == 40)
    a.close()
    shared([b])
    b.close()


def static():
    t = topic("static")
    a, b = (Member(t, t, "range", group_instance_id=i) for i in "ab")
    shared([a, b])
    owned, seen = a.owned, b.assignments
    a.close()
    again = Member(t, t, "range", group_instance_id="a")
    check.until("the member has its partitions back", lambda: again.owned == owned)
    check.equal(seen, b.assignments, "assignments of the other")
    again.close()
    b.close()


class Group:
    """A consumer group (KIP-848): what its members have, as they see it, what was written, and what they have read."""

    def __init__(self, name, assignor):
        self.name, self.assignor, self.topics = PREFIX + name, assignor, {}
        self.lock, self.wrong, self.read, self.written, self.members = threading.Lock(), [], set(), {}, []
        self.tenures = {}  # by partition: who had it, since when, and until when, None for now

    def topic(self, name, partitions):
        done(admin.create_topics([NewTopic(name, partitions, 1)]))
        self.topics[name] = partitions
        return name

    def join(self, name, subscription, kind=None, **settings):
        self.members.append((kind or Owner)(self, name, subscription, **settings))
        return self.members[-1]

    def begins(self, *names, subscription, **settings):
        """Has members join, each when the one before has its partitions. librdkafka can say, a moment after it was given its
        first partitions and before it has told the application, that it has none; another gets them then, and it takes them
        nevertheless."""
        joined = []
        for name in names:
            joined.append(self.join(name, subscription, **{k: v(name) for k, v in settings.items()}))
            self.settles(*joined)
        return joined

    def settings(self, name, **settings):
        """What its members have in common."""
        return dict(group_id=self.name, group_protocol="consumer", group_remote_assignor=self.assignor, client_id=name,
                    enable_auto_commit=True, auto_commit_interval_ms=100, topic_metadata_refresh_interval_ms=1000, **settings)

    def came(self, member, partitions, at):
        with self.lock:
            for p in partitions:
                self.tenures.setdefault(p, []).append([member, at, None])

    def went(self, member, partitions, at):
        with self.lock:
            for p in partitions:
                for tenure in self.tenures.get(p, []):
                    if tenure[0] is member and tenure[2] is None:
                        tenure[2] = at

    def silence(self, member):
        """Notes that a member cannot say any more that it has nothing."""
        self.went(member, list(self.tenures), time.time_ns())

    def owners(self):
        with self.lock:
            return {p: t[0] for p, tenures in self.tenures.items() for t in tenures if t[2] is None}

    def twice(self):
        """The partitions that two members had at the same time, by their own clocks: they speak in any order."""
        wrong = []
        with self.lock:
            for p, tenures in self.tenures.items():
                ordered = sorted(tenures, key=lambda t: t[1])
                wrong += [f"{p} came to {b[0].name} while {a[0].name} had it" for a, b in zip(ordered, ordered[1:])
                          if a[0] is not b[0] and (a[2] is None or a[2] > b[1])]
        return wrong

    def settles(self, *members):
        """Waits until these members are the group, have everything, and know it."""
        everything = {(t, p) for t, n in self.topics.items() for p in range(n)}

        def settled():
            owners = self.owners()
            if any(o not in members for o in owners.values()) or owners.keys() != everything:
                return False
            d = done(admin.describe_consumer_groups([self.name]))
            given = [(p.topic, p.partition) for m in d.members for p in m.assignment.topic_partitions]
            return d.state == ConsumerGroupState.STABLE and len(d.members) == len(members) and sorted(given) == sorted(everything)

        check.until(f"the group has settled with {len(members)} members", settled)
        check.equal([], self.twice(), "partitions with two owners")
        check.equal(self.assignor, done(admin.describe_consumer_groups([self.name])).partition_assignor, "the assignor")

    def reads(self):
        """Writes records, and waits until all that were ever written are read, and their ends committed."""
        p = Producer({"bootstrap.servers": BROKER})

        def delivered(error, m):
            self.wrong.append(error) if error else self.written.setdefault((m.topic(), m.partition()), []).append(m.offset())

        for t, n in self.topics.items():
            for i in range(20 * n):
                p.produce(t, b"%d" % i, partition=i % n, on_delivery=delivered)
        check.equal(0, p.flush(30), "records not delivered")
        check.equal([], self.wrong, "errors")
        check.until("all read", lambda: all((t, n, o) in self.read for (t, n), all_of in self.written.items() for o in all_of))
        ends = {at: max(offsets) + 1 for at, offsets in self.written.items()}

        def committed():
            left = done(admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(self.name)]))
            return {(p.topic, p.partition): p.offset for p in left.topic_partitions if (p.topic, p.partition) in ends} == ends

        check.until("the ends are committed", committed)

    def deletes(self, name):
        done(admin.delete_topics([name]))
        del self.topics[name]

    def forget(self, name):
        self.read = {r for r in self.read if r[0] != name}
        self.written = {at: offsets for at, offsets in self.written.items() if at[0] != name}

    def close(self):
        for m in self.members:
            m.close()
        check.equal([], self.twice(), "partitions with two owners")


class Owner(threading.Thread):
    """A member of a consumer group, with a thread of its own."""

    def __init__(self, group, name, subscription, **settings):
        super().__init__(daemon=True, name=name)
        self.group, self.ending, self.changes = group, False, 0
        self.consumer = consumer(**group.settings(name, **settings))
        self.consumer.subscribe([subscription], on_assign=self.assigned, on_revoke=self.gone, on_lost=self.gone)
        self.start()

    def assigned(self, c, partitions):
        self.changes += 1
        self.group.came(self, [(p.topic, p.partition) for p in partitions], time.time_ns())
        c.incremental_assign(partitions)

    def gone(self, c, partitions):
        self.changes += 1
        # Before the broker knows: another may have them at once then.
        self.group.went(self, [(p.topic, p.partition) for p in partitions], time.time_ns())
        c.incremental_unassign(partitions)

    def owned(self):
        return {p for p, owner in self.group.owners().items() if owner is self}

    def run(self):
        while not self.ending:
            m = self.consumer.poll(0.1)
            if m is not None and m.error() is None:
                self.group.read.add((m.topic(), m.partition(), m.offset()))
        self.consumer.close()

    def close(self):
        self.ending = True
        self.join(20)


class Process(threading.Thread):
    """A member of a consumer group that is a process of its own (confluent_member.py). The thread listens to it."""

    def __init__(self, group, name, subscription, **settings):
        super().__init__(daemon=True, name=name)
        self.group = group
        config = {k.replace("_", "."): v for k, v in group.settings(name, **settings).items()}
        config |= {"bootstrap.servers": BROKER, "auto.offset.reset": "earliest"}
        program = os.path.join(os.path.dirname(__file__), "confluent_member.py")
        self.process = subprocess.Popen([sys.executable, program, json.dumps(config), subscription],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.start()

    def run(self):
        for line in self.process.stdout:
            said = json.loads(line)
            partitions = [tuple(p) for p in said["partitions"]]
            if said["event"] == "read":
                self.group.read.update(partitions)
            elif said["event"] == "came":
                self.group.came(self, partitions, said["at"])
            else:
                self.group.went(self, partitions, said["at"])

    def crash(self):
        """Ends it without a word to the broker."""
        self.group.silence(self)
        self.process.kill()
        self.close()
        self.group.silence(self)

    def stall(self):
        self.group.silence(self)
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def close(self):
        self.process.stdin.close()
        self.join(20)
        self.process.wait(20)


def consumers_come_and_go(assignor):
    g = Group("consumer-" + assignor, assignor)
    t = g.topic(g.name, 6)
    a, b = g.begins("a", "b", subscription=t)
    g.reads()
    c = g.join("c", t)
    g.settles(a, b, c)
    b.close()
    g.settles(a, c)
    g.reads()
    d = g.join("d", t, Process)
    c.close()
    g.settles(a, d)
    g.reads()
    d.crash()
    e = g.join("e", t, Process)
    g.settles(a, e)
    g.reads()
    e.stall()
    g.settles(a)
    g.reads()
    e.resume()
    g.settles(a, e)
    g.reads()
    g.close()


def consumers_restart(assignor):
    g = Group("consumer-static-" + assignor, assignor)
    t = g.topic(g.name, 6)
    a, b = g.begins("a", "b", subscription=t, group_instance_id=str)
    g.reads()
    owned, changes = a.owned(), b.changes
    a.close()
    again = g.join("a2", t, group_instance_id="a")
    g.settles(again, b)
    g.reads()
    check.equal((owned, changes), (again.owned(), b.changes), "what the member has, and what the other noticed")
    g.close()


def consumers_follow_topics(assignor):
    g = Group("consumer-topics-" + assignor, assignor)
    first, second = g.topic(g.name + ".1", 4), g.name + ".2"
    a, b = g.begins("a", "b", subscription="^" + g.name + r"\..*")
    g.reads()
    g.topic(second, 3)
    g.settles(a, b)
    g.reads()
    done(admin.create_partitions([NewPartitions(first, 6)]))
    g.topics[first] = 6
    g.settles(a, b)
    g.reads()
    g.deletes(second)
    g.settles(a, b)
    g.forget(second)
    g.topic(second, 2)
    g.settles(a, b)
    g.reads()
    g.close()


def transactional_producer(transactional_id):
    p = Producer({"bootstrap.servers": BROKER, "transactional.id": transactional_id, "linger.ms": 0})
    p.init_transactions(30)
    return p


def send(p, t, values):
    """Sends values, in turns to the partitions, and waits until the broker has them."""
    for i, value in enumerate(values):
        p.produce(t, value, partition=i % PARTITIONS)
    check.equal(0, p.flush(30), "records not delivered")


def numbers(first, end):
    return [b"%d" % i for i in range(first, end)]


def read_to_end(t, isolation):
    """What a reader gets, by partition and in order."""
    c = consumer(isolation_level=isolation, enable_partition_eof=True, fetch_wait_max_ms=20)
    c.assign([TopicPartition(t, p, OFFSET_BEGINNING) for p in range(PARTITIONS)])
    got, ends = [[] for _ in range(PARTITIONS)], set()

    def at_end():
        for m in c.consume(1000, 0.05):
            if m.error() is None:
                got[m.partition()].append(m.value())
            else:
                check.equal(KafkaError._PARTITION_EOF, m.error().code(), "the error")
                ends.add(m.partition())
        return len(ends) == PARTITIONS

    check.until("the ends", at_end)
    c.close()
    return got


def readers(t, committed, everything):
    """Demands what readers get: one of committed transactions, another everything."""
    def turns(values):
        return [values[p::PARTITIONS] for p in range(PARTITIONS)]

    # The coordinator answers a commit before all partitions know of it.
    check.until("the committed records", lambda: read_to_end(t, "read_committed") == turns(committed))
    check.equal(turns(everything), read_to_end(t, "read_uncommitted"), "all records")


def commit_and_abort():
    t = topic("transactions")
    p = transactional_producer(t)
    for i in range(5):
        p.begin_transaction()
        send(p, t, numbers(i * 40, i * 40 + 40))
        p.abort_transaction(30) if i % 2 == 0 else p.commit_transaction(30)
    p.begin_transaction()
    send(p, t, numbers(200, 240))
    committed = numbers(40, 80) + numbers(120, 160)
    readers(t, committed, numbers(0, 240))
    p.commit_transaction(30)
    readers(t, committed + numbers(200, 240), numbers(0, 240))


def fencing():
    t = topic("transactions-fence")
    first = transactional_producer(t)
    first.begin_transaction()
    send(first, t, numbers(0, 40))
    second = transactional_producer(t)
    second.begin_transaction()
    send(second, t, numbers(40, 80))
    try:
        first.commit_transaction(30)
        raise AssertionError("the first was not fenced")
    except KafkaException as e:
        check.equal((True, KafkaError._FENCED), (e.args[0].fatal(), e.args[0].code()), "the error")
    second.commit_transaction(30)
    readers(t, numbers(40, 80), numbers(0, 80))


class Copier(threading.Thread):
    """Copies records from a topic to another, a few in each transaction together with the offsets that it has read up
    to. Every third transaction is aborted and done again."""

    def __init__(self, name, source, to):
        super().__init__(daemon=True)
        self.to, self.copied, self.transactions, self.aborted = to, 0, 0, 0
        self.joined, self.ending, self.error = False, False, None
        self.producer = transactional_producer(f"{source}-{name}")
        self.consumer = consumer(group_id=source, heartbeat_interval_ms=200, fetch_wait_max_ms=50, isolation_level="read_committed")
        self.consumer.subscribe([source])
        self.start()

    def run(self):
        try:
            while not self.ending:
                messages = self.consumer.consume(5, 0.1)
                self.joined = bool(self.consumer.assignment())
                if messages:
                    self.copy(messages)
        except BaseException as e:
            self.error = e
        self.consumer.close()

    def copy(self, messages):
        self.producer.begin_transaction()
        try:
            for m in messages:
                assert m.error() is None, m.error()
                self.producer.produce(self.to, m.value(), partition=m.partition())
            offsets = {m.partition(): TopicPartition(m.topic(), m.partition(), m.offset() + 1) for m in messages}
            self.producer.send_offsets_to_transaction(list(offsets.values()), self.consumer.consumer_group_metadata(), 30)
            self.producer.flush(30)
            self.transactions += 1
            if self.transactions % 3 == 0:
                self.back()
                return
            self.producer.commit_transaction(30)
            self.copied += len(messages)
        except KafkaException as e:
            if e.args[0].fatal():
                raise
            self.back()

    def count(self):
        """How many records it has copied in transactions that were committed."""
        assert self.error is None, self.error
        return self.copied

    def back(self):
        """Aborts, and goes back to what is committed."""
        self.producer.abort_transaction(30)
        self.aborted += 1
        for p in self.consumer.committed(self.consumer.assignment(), timeout=30):
            self.consumer.seek(TopicPartition(p.topic, p.partition, p.offset if p.offset >= 0 else OFFSET_BEGINNING))


def copy():
    source, to = topic("transactions-from"), topic("transactions-to")
    p = Producer({"bootstrap.servers": BROKER})
    send(p, source, numbers(0, 100))
    a = Copier("a", source, to)
    check.until("some are copied", lambda: a.count() >= 30)
    b = Copier("b", source, to)
    check.until("the second has joined", lambda: b.count() >= 0 and b.joined)
    send(p, source, numbers(100, 200))
    check.until("all are copied", lambda: a.count() + b.count() >= 200)
    for c in a, b:
        c.ending = True
        c.join(20)
    assert a.aborted > 0 and b.count() > 0, f"aborted {a.aborted}, copied by the second {b.count()}"
    want = [numbers(p, 200)[::PARTITIONS] for p in range(PARTITIONS)]
    check.until("the records committed", lambda: read_to_end(to, "read_committed") == want)
    assert sum(map(len, read_to_end(to, "read_uncommitted"))) > 200, "no aborted records are there"


def admin_topics():
    t = topic("admin", **{"retention.ms": "3600000"})
    try:
        topic("admin")
        raise AssertionError("a topic was created twice")
    except KafkaException as e:
        check.equal(KafkaError.TOPIC_ALREADY_EXISTS, e.args[0].code(), "the error")
    done(admin.create_partitions([NewPartitions(t, 6)]))
    check.equal(6, len(admin.list_topics(t, timeout=30).topics[t].partitions), "partitions")
    description = done(admin.describe_topics(TopicCollection([t])))
    check.equal(6, len(description.partitions), "partitions described")
    check.equal(1, len(admin.describe_cluster().result(timeout=30).nodes), "brokers")
    resource = ConfigResource(ResourceType.TOPIC, t)
    check.equal("3600000", done(admin.describe_configs([resource]))["retention.ms"].value, "retention.ms")
    resource.add_incremental_config(ConfigEntry("retention.ms", "7200000", incremental_operation=AlterConfigOpType.SET))
    done(admin.incremental_alter_configs([resource]))
    check.equal("7200000", done(admin.describe_configs([ConfigResource(ResourceType.TOPIC, t)]))["retention.ms"].value, "retention.ms as altered")
    _, offsets = write(t, 40)
    p = TopicPartition(t, 0)
    check.equal(offsets[36] + 1, done(admin.list_offsets({p: OffsetSpec.latest()})).offset, "the latest offset")
    check.equal(offsets[8], done(admin.delete_records([TopicPartition(t, 0, offsets[8])])).low_watermark, "the low watermark")
    check.equal(offsets[8], done(admin.list_offsets({p: OffsetSpec.earliest()})).offset, "the earliest offset")
    done(admin.delete_topics([t]))
    check.until("the topic is gone", lambda: t not in admin.list_topics(timeout=30).topics)


def admin_groups():
    t = topic("admin-groups")
    m = Member(t, t, "range")
    shared([m])
    listed = admin.list_consumer_groups(states={ConsumerGroupState.STABLE}).result(timeout=30).valid
    assert t in [g.group_id for g in listed], "the group is not listed"
    described = done(admin.describe_consumer_groups([t]))
    check.equal((ConsumerGroupState.STABLE, "range", 1), (described.state, described.partition_assignor, len(described.members)), "the group")
    check.equal(PARTITIONS, len(described.members[0].assignment.topic_partitions), "partitions assigned")
    m.close()
    done(admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(t, [TopicPartition(t, 0, 7)])]))
    left = done(admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(t, [TopicPartition(t, 0)])]))
    check.equal(7, left.topic_partitions[0].offset, "the altered offset")
    done(admin.delete_consumer_groups([t]))
    assert t not in [g.group_id for g in admin.list_consumer_groups().result(timeout=30).valid], "the group is still listed"


check.version("confluent-kafka")
# These mostly wait: for members to settle, and for patterns to be looked at again.
consumer_groups = check.start([
    (f"consumer group: {assignor}, {name}", body, assignor)
    for assignor in ("uniform", "range")
    for name, body in (
        ("members join, leave, crash and stall", consumers_come_and_go),
        ("static members restart without a rebalance", consumers_restart),
        ("topics by pattern that grow, vanish and come back", consumers_follow_topics),
    )
])
for acks in 0, 1, "all":
    check.run(f"produce: acks={acks}", lambda: round_trip(f"acks-{acks}", acks=acks))
check.run("produce: idempotent", lambda: round_trip("idempotent", enable_idempotence=True))
for codec in check.CODECS[1:]:
    check.run(f"produce: {codec}", lambda: round_trip(codec, compression_type=codec, linger_ms=20))
check.run("consume: seek, pause and resume", seek_and_pause)
check.run("consume: offsets for times", times)
check.run("commit: sync and automatic", commits)
for assignor in "range", "roundrobin", "cooperative-sticky":
    check.run(f"group: {assignor}", come_and_go, assignor)
check.run("group: static members restart without a rebalance", static)
check.run("transactions: commit and abort", commit_and_abort)
check.run("transactions: fencing by a second producer", fencing)
check.run("transactions: consume, transform, produce through a rebalance", copy)
check.run("admin: topics, partitions, configs, records, offsets", admin_topics)
check.run("admin: groups and their offsets", admin_groups)
consumer_groups()
check.end()
