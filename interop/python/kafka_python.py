"""kafka-python against the broker that the first argument names."""

import sys
import threading

import check
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.admin import ConfigResource, MemberToRemove, NewTopic
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import NoError, TopicAlreadyExistsError

BROKER = sys.argv[1]
PREFIX = "kafka-python-"
PARTITIONS = 4
admin = KafkaAdminClient(bootstrap_servers=BROKER)


def topic(name, **configs):
    admin.create_topics([NewTopic(name=PREFIX + name, num_partitions=PARTITIONS, replication_factor=1, topic_configs=configs)])
    return PREFIX + name


def consumer(*topics, **settings):
    config = {"bootstrap_servers": BROKER, "enable_auto_commit": False, "auto_offset_reset": "earliest", "fetch_max_wait_ms": 100}
    c = KafkaConsumer(*topics, **{**config, **settings})
    for t in topics:
        # A leader that has not heard of the topic's partitions would give none to anybody.
        check.until("the topic is known", lambda: c.partitions_for_topic(t))
    return c


def write(name, n, **settings):
    """Writes records, and returns them and their offsets."""
    written = check.records(n, PARTITIONS)
    p = KafkaProducer(bootstrap_servers=BROKER, **settings)
    sent = [p.send(name, value, key, headers, partition, timestamp) for partition, key, value, timestamp, headers in written]
    offsets = [f.get(30).offset for f in sent]
    p.close()
    return written, offsets


def read(c, n):
    """Reads records of what is assigned."""
    got = []

    def enough():
        for records in c.poll(100).values():
            got.extend((r.partition, r.key, r.value, r.timestamp, list(r.headers)) for r in records)
        return len(got) >= n

    check.until(f"{n} records", enough)
    return got


def round_trip(name, **settings):
    t = topic(name)
    written, _ = write(t, 200, **settings)
    c = consumer()
    c.assign([TopicPartition(t, p) for p in range(PARTITIONS)])
    got = read(c, 200)
    c.close()
    check.same(written, got)


def seek_and_pause():
    t = topic("seek")
    _, offsets = write(t, 40)
    p0, p1 = TopicPartition(t, 0), TopicPartition(t, 1)
    c = consumer()
    c.assign([p0, p1])
    check.equal(20, len(read(c, 20)), "records")
    c.pause(p0)
    c.seek(p0, offsets[0])
    c.seek(p1, offsets[5])
    check.equal({1}, {r[0] for r in read(c, 9)}, "partitions while one is paused")
    c.resume(p0)
    check.equal(10, len(read(c, 10)), "records of the partition that was paused")
    assert c.beginning_offsets([p0])[p0] <= offsets[0], "the beginning is after the first record"
    check.equal({p0: offsets[36] + 1}, c.end_offsets([p0]), "the end")
    c.close()


def times():
    t = topic("times")
    written, offsets = write(t, 40)
    p0, p1 = TopicPartition(t, 0), TopicPartition(t, 1)
    c = consumer()
    found = c.offsets_for_times({p0: written[8][3] - 1, p1: written[39][3] + 1000})
    check.equal(offsets[8], found[p0].offset, "the offset of a time")
    check.equal(None, found[p1], "the offset of a time to come")
    c.close()


def commits():
    t = topic("commits")
    _, offsets = write(t, 40)
    group = PREFIX + "commits"
    p = TopicPartition(t, 0)
    c = consumer(group_id=group)
    c.assign([p])
    c.commit({p: OffsetAndMetadata(offsets[8], "eight", -1)})
    check.equal(offsets[8], c.committed(p), "the committed offset")
    c.close()
    c = consumer(t, group_id=group, enable_auto_commit=True, auto_commit_interval_ms=100)
    check.equal(38, len(read(c, 38)), "records after the committed offset")
    c.close()
    committed = {p.partition: o.offset for p, o in admin.list_group_offsets([group])[group].items()}
    check.equal({p: offsets[36 + p] + 1 for p in range(PARTITIONS)}, committed, "offsets committed automatically")


class Member:
    """A consumer in a group, with a thread of its own."""

    def __init__(self, t, assignor, **settings):
        self.owned, self.read, self.generation, self.ending = set(), [], -1, False
        self.consumer = consumer(t, group_id=t, partition_assignment_strategy=[assignor], enable_auto_commit=True,
                                 auto_commit_interval_ms=100, heartbeat_interval_ms=200, **settings)
        self.thread = threading.Thread(target=self.poll, daemon=True)
        self.thread.start()

    def poll(self):
        while not self.ending:
            for records in self.consumer.poll(100).values():
                self.read.extend(r.value for r in records)
            self.owned = {p.partition for p in self.consumer.assignment()}
            self.generation = self.consumer.group_metadata().generation_id
        self.consumer.close()

    def close(self):
        self.ending = True
        self.thread.join(20)


def shared(members):
    """Waits until each partition has one owner, and each member a fair share."""
    check.until("the partitions are shared", lambda: (
        sorted(p for m in members for p in m.owned) == list(range(PARTITIONS))
        and all(len(m.owned) == PARTITIONS // len(members) for m in members)
        and len({m.generation for m in members}) == 1))


def come_and_go(name, assignor):
    t = topic("group-" + name)
    a = Member(t, assignor)
    shared([a])
    b = Member(t, assignor)
    shared([a, b])
    write(t, 40)
    check.until("all read", lambda: len(set(a.read + b.read)) == 40)
    a.close()
    shared([b])
    b.close()


def static():
    t = topic("static")
    a, b = (Member(t, RangePartitionAssignor, group_instance_id=i) for i in "ab")
    shared([a, b])
    owned, generation = a.owned, b.generation
    a.close()
    again = Member(t, RangePartitionAssignor, group_instance_id="a")
    check.until("the member has its partitions back", lambda: again.owned == owned and again.generation > 0)
    check.equal((generation, generation), (again.generation, b.generation), "generations")
    again.close()
    b.close()
    admin.remove_group_members(t, [MemberToRemove(group_instance_id=i) for i in "ab"])
    check.equal([], admin.describe_groups([t])[t]["members"], "members")


def read_to_end(t, isolation):
    """The values that a reader gets, by partition and in order."""
    c = consumer(isolation_level=isolation)
    partitions = [TopicPartition(t, p) for p in range(PARTITIONS)]
    c.assign(partitions)
    got, ends = [[] for _ in partitions], c.end_offsets(partitions)

    def at_end():
        for records in c.poll(50).values():
            for r in records:
                got[r.partition].append(r.value)
        return all(c.position(p) >= ends[p] for p in partitions)

    check.until("the end", at_end)
    c.close()
    return got


def transactions():
    """Runs transactions that are committed and aborted in turns, each with an offset."""
    t = topic("transactions")
    partition, committed, everything = TopicPartition(t, 0), [[] for _ in range(PARTITIONS)], [[] for _ in range(PARTITIONS)]
    p = KafkaProducer(bootstrap_servers=BROKER, transactional_id=t, linger_ms=0)
    p.init_transactions()
    c = consumer(group_id=t)
    for i in range(6):
        p.begin_transaction()
        for n in range(20):
            value = b"%d of %d" % (n, i)
            p.send(t, value, partition=n % PARTITIONS)
            for kept in (everything, committed) if i % 2 == 0 else (everything,):
                kept[n % PARTITIONS].append(value)
        p.send_offsets_to_transaction({partition: OffsetAndMetadata(i + 10, "", -1)}, t)
        p.flush()
        p.commit_transaction() if i % 2 == 0 else p.abort_transaction()
        # The coordinator answers a commit before all partitions know of it.
        check.until("the offset is committed", lambda: c.committed(partition) == 10 + i - i % 2)
    p.close()
    c.close()
    check.until("the committed records", lambda: read_to_end(t, "read_committed") == committed)
    check.equal(everything, read_to_end(t, "read_uncommitted"), "all records")


def admin_topics():
    t = topic("admin", **{"retention.ms": "3600000"})
    try:
        topic("admin")
        raise AssertionError("a topic was created twice")
    except TopicAlreadyExistsError:
        pass
    admin.create_partitions({t: 6})
    check.equal(6, len(admin.describe_topics([t])[0]["partitions"]), "partitions")
    check.equal(6, len(admin.describe_topic_partitions([t])["topics"][0]["partitions"]), "partitions described")
    check.equal(1, len(admin.describe_cluster()["brokers"]), "brokers")
    check.equal("3600000", setting(t, "retention.ms"), "retention.ms")
    admin.alter_configs([ConfigResource("TOPIC", t, {"retention.ms": "7200000"})])
    check.equal("7200000", setting(t, "retention.ms"), "retention.ms as altered")
    _, offsets = write(t, 40)
    p = TopicPartition(t, 0)
    check.equal(offsets[36] + 1, admin.list_partition_offsets({p: -1})[p].offset, "the latest offset")
    admin.delete_records({p: offsets[8]})
    check.equal(offsets[8], admin.list_partition_offsets({p: -2})[p].offset, "the earliest offset")
    assert admin.describe_log_dirs([t]), "no log dirs"
    admin.delete_topics([t])
    check.until("the topic is gone", lambda: t not in admin.list_topics())


def setting(t, name):
    value = admin.describe_configs([ConfigResource("TOPIC", t)], config_filter="all")
    found = next(iter(value.values()))[t][name]
    return found["value"]


def admin_groups():
    t = topic("admin-groups")
    m = Member(t, RangePartitionAssignor)
    shared([m])
    assert t in [g["group_id"] for g in admin.list_groups(states_filter=["Stable"])], "the group is not listed"
    described = admin.describe_groups([t])[t]
    check.equal(("Stable", "range", 1), (described["group_state"], described["protocol_data"], len(described["members"])), "the group")
    m.close()
    p = TopicPartition(t, 0)
    check.equal({p: NoError}, admin.alter_group_offsets(t, {p: OffsetAndMetadata(7, "", -1)}), "the answer")
    check.equal(7, admin.list_group_offsets([t])[t][p].offset, "the altered offset")
    check.equal({p: NoError}, admin.delete_group_offsets(t, [p]), "the answer")
    admin.delete_groups([t])
    assert t not in [g["group_id"] for g in admin.list_groups()], "the group is still listed"


check.version("kafka-python")
for acks in 0, 1, "all":
    check.run(f"produce: acks={acks}", lambda: round_trip(f"acks-{acks}", acks=acks, enable_idempotence=False))
check.run("produce: idempotent", lambda: round_trip("idempotent", enable_idempotence=True))
for codec in check.CODECS[1:]:
    check.run(f"produce: {codec}", lambda: round_trip(codec, compression_type=codec, linger_ms=20))
check.run("consume: seek, pause and resume", seek_and_pause)
check.run("consume: offsets for times", times)
check.run("commit: sync and automatic", commits)
check.run("group: range", come_and_go, "range", RangePartitionAssignor)
check.run("group: roundrobin", come_and_go, "roundrobin", RoundRobinPartitionAssignor)
check.run("group: sticky", come_and_go, "sticky", StickyPartitionAssignor)
check.run("group: cooperative-sticky", come_and_go, "cooperative-sticky", CooperativeStickyAssignor)
check.run("group: static members restart without a rebalance", static)
check.run("transactions: commit and abort, with offsets", transactions)
check.run("admin: topics, partitions, configs, records, offsets, log dirs", admin_topics)
check.run("admin: groups and their offsets", admin_groups)
check.end()
