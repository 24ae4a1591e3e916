"""aiokafka against the broker that the first argument names."""

import asyncio
import sys
import time

import check
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, OffsetAndMetadata, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

BROKER = sys.argv[1]
PREFIX = "aiokafka-"
PARTITIONS = 4


async def topic(name, **configs):
    answer = await admin.create_topics([NewTopic(PREFIX + name, PARTITIONS, 1, topic_configs=configs)])
    check.equal(0, answer.topic_errors[0][1], "the error of creating a topic")
    return PREFIX + name


async def until(what, condition):
    deadline = time.monotonic() + check.PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"after {check.PATIENCE} s still not: {what}"
        await asyncio.sleep(0.02)


async def consumer(*topics, **settings):
    config = {"bootstrap_servers": BROKER, "enable_auto_commit": False, "auto_offset_reset": "earliest", "fetch_max_wait_ms": 100}
    c = AIOKafkaConsumer(*topics, **{**config, **settings})
    await c.start()
    return c


async def write(name, n, **settings):
    """Writes records, and returns them and their offsets."""
    written = check.records(n, PARTITIONS)
    p = AIOKafkaProducer(bootstrap_servers=BROKER, **settings)
    await p.start()
    sent = [await p.send(name, value, key, partition, timestamp, headers) for partition, key, value, timestamp, headers in written]
    results = [await f for f in sent]
    await p.stop()
    return written, [r.offset if r else None for r in results]


async def read(c, n):
    """Reads records of what is assigned."""
    got = []
    deadline = time.monotonic() + check.PATIENCE
    while len(got) < n:
        for records in (await c.getmany(timeout_ms=100)).values():
            got.extend((r.partition, r.key, r.value, r.timestamp, list(r.headers)) for r in records)
        assert time.monotonic() < deadline, f"after {check.PATIENCE} s only {len(got)} of {n} records"
    return got


async def round_trip(name, **settings):
    t = await topic(name)
    written, _ = await write(t, 200, **settings)
    c = await consumer()
    c.assign([TopicPartition(t, p) for p in range(PARTITIONS)])
    got = await read(c, 200)
    await c.stop()
    check.same(written, got)


async def seek_and_pause():
    t = await topic("seek")
    _, offsets = await write(t, 40)
    p0, p1 = TopicPartition(t, 0), TopicPartition(t, 1)
    c = await consumer()
    c.assign([p0, p1])
    check.equal(20, len(await read(c, 20)), "records")
    c.pause(p0)
    c.seek(p0, offsets[0])
    c.seek(p1, offsets[5])
    check.equal({1}, {r[0] for r in await read(c, 9)}, "partitions while one is paused")
    c.resume(p0)
    check.equal(10, len(await read(c, 10)), "records of the partition that was paused")
    assert (await c.beginning_offsets([p0]))[p0] <= offsets[0], "the beginning is after the first record"
    check.equal({p0: offsets[36] + 1}, await c.end_offsets([p0]), "the end")
    await c.stop()


async def times():
    t = await topic("times")
    written, offsets = await write(t, 40)
    p0, p1 = TopicPartition(t, 0), TopicPartition(t, 1)
    c = await consumer()
    found = await c.offsets_for_times({p0: written[8][3] - 1, p1: written[39][3] + 1000})
    check.equal(offsets[8], found[p0].offset, "the offset of a time")
    check.equal(None, found[p1], "the offset of a time to come")
    await c.stop()


async def commits():
    t = await topic("commits")
    _, offsets = await write(t, 40)
    group = PREFIX + "commits"
    p = TopicPartition(t, 0)
    c = await consumer(group_id=group)
    c.assign([p])
    await c.commit({p: OffsetAndMetadata(offsets[8], "eight")})
    check.equal(offsets[8], await c.committed(p), "the committed offset")
    await c.stop()
    c = await consumer(t, group_id=group, enable_auto_commit=True, auto_commit_interval_ms=100)
    check.equal(38, len(await read(c, 38)), "records after the committed offset")
    await c.stop()
    committed = {p.partition: o.offset for p, o in (await admin.list_consumer_group_offsets(group)).items()}
    check.equal({p: offsets[36 + p] + 1 for p in range(PARTITIONS)}, committed, "offsets committed automatically")


class Member:
    """A consumer in a group, with a task of its own."""

    def __init__(self, c):
        self.consumer, self.values = c, []
        self.task = asyncio.create_task(self.poll())

    async def poll(self):
        async for r in self.consumer:
            self.values.append(r.value)

    def owned(self):
        return {p.partition for p in self.consumer.assignment()}

    async def close(self):
        self.task.cancel()
        await self.consumer.stop()


async def member(t, assignor, **settings):
    return Member(await consumer(t, group_id=t, partition_assignment_strategy=[assignor], enable_auto_commit=True,
                                 auto_commit_interval_ms=100, heartbeat_interval_ms=200, **settings))


async def shared(members):
    """Waits until each partition has one owner, and each member a fair share."""
    await until("the partitions are shared", lambda: (
        sorted(p for m in members for p in m.owned()) == list(range(PARTITIONS))
        and all(len(m.owned()) == PARTITIONS // len(members) for m in members)))


async def come_and_go(name, assignor):
    t = await topic("group-" + name)
    a = await member(t, assignor)
    await shared([a])
    b = await member(t, assignor)
    await shared([a, b])
    await write(t, 40)
    await until("all read", lambda: len(set(a.values + b.values)) == 40)
    await a.close()
    await shared([b])
    await b.close()


async def static():
    t = await topic("static")
    a, b = [await member(t, RangePartitionAssignor, group_instance_id=i) for i in "ab"]
    await shared([a, b])
    owned, kept = a.owned(), b.owned()
    await a.close()
    again = await member(t, RangePartitionAssignor, group_instance_id="a")
    await until("the member has its partitions back", lambda: again.owned() == owned)
    check.equal(kept, b.owned(), "partitions of the other")
    await again.close()
    await b.close()


async def setting(t, name):
    answer = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, t)])
    return {entry[0]: entry[1] for entry in answer[0].resources[0][4]}[name]


async def read_to_end(t, isolation):
    """The values that a reader gets, by partition and in order."""
    c = await consumer(isolation_level=isolation)
    partitions = [TopicPartition(t, p) for p in range(PARTITIONS)]
    c.assign(partitions)
    got, deadline = [[] for _ in partitions], time.monotonic() + check.PATIENCE
    ends = await c.end_offsets(partitions)
    while any([await c.position(p) < ends[p] for p in partitions]):
        for records in (await c.getmany(timeout_ms=50)).values():
            for r in records:
                got[r.partition].append(r.value)
        assert time.monotonic() < deadline, "not at the end"
    await c.stop()
    return got


async def becomes(want, question, *args):
    deadline = time.monotonic() + check.PATIENCE
    while (got := await question(*args)) != want:
        assert time.monotonic() < deadline, f"after {check.PATIENCE} s still {got}, not {want}"
        await asyncio.sleep(0.02)


async def transactions():
    """Runs transactions that are committed and aborted in turns, each with an offset."""
    t = await topic("transactions")
    partition, committed, everything = TopicPartition(t, 0), [[] for _ in range(PARTITIONS)], [[] for _ in range(PARTITIONS)]
    p = AIOKafkaProducer(bootstrap_servers=BROKER, transactional_id=t, linger_ms=0)
    await p.start()
    c = await consumer(group_id=t)
    for i in range(6):
        await p.begin_transaction()
        for n in range(20):
            value = b"%d of %d" % (n, i)
            await p.send(t, value, partition=n % PARTITIONS)
            for kept in (everything, committed) if i % 2 == 0 else (everything,):
                kept[n % PARTITIONS].append(value)
        await p.send_offsets_to_transaction({partition: i + 10}, t)
        await (p.commit_transaction() if i % 2 == 0 else p.abort_transaction())
        # The coordinator answers a commit before all partitions know of it.
        await becomes(10 + i - i % 2, c.committed, partition)
    await p.stop()
    await c.stop()
    await becomes(committed, read_to_end, t, "read_committed")
    check.equal(everything, await read_to_end(t, "read_uncommitted"), "all records")


async def admin_topics():
    t = await topic("admin", **{"retention.ms": "3600000"})
    await admin.create_partitions({t: NewPartitions(6)})
    check.equal(6, len((await admin.describe_topics([t]))[0]["partitions"]), "partitions")
    check.equal(1, len((await admin.describe_cluster())["brokers"]), "brokers")
    check.equal("3600000", await setting(t, "retention.ms"), "retention.ms")
    await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, t, {"retention.ms": "7200000"})])
    check.equal("7200000", await setting(t, "retention.ms"), "retention.ms as altered")
    _, offsets = await write(t, 40)
    p = TopicPartition(t, 0)
    check.equal({p: offsets[8]}, await admin.delete_records({p: RecordsToDelete(offsets[8])}), "low watermarks")
    await admin.delete_topics([t])
    assert t not in await admin.list_topics(), "the topic is still listed"


async def admin_groups():
    t = await topic("admin-groups")
    m = await member(t, RangePartitionAssignor)
    await shared([m])
    assert t in [g[0] for g in await admin.list_consumer_groups()], "the group is not listed"
    group = (await admin.describe_consumer_groups([t]))[0].groups[0]
    check.equal((0, t, "Stable", "consumer", "range", 1), (*group[:5], len(group[5])), "the group")
    await m.close()


async def run(name, body, *args, **settings):
    try:
        await asyncio.wait_for(body(*args, **settings), 2 * check.PATIENCE)
        print("ok", name, flush=True)
    except BaseException:
        check.failed(name)


async def main():
    global admin
    admin = AIOKafkaAdminClient(bootstrap_servers=BROKER)
    await admin.start()
    for acks in 0, 1, "all":
        await run(f"produce: acks={acks}", round_trip, f"acks-{acks}", acks=acks)
    await run("produce: idempotent", round_trip, "idempotent", enable_idempotence=True)
    for codec in check.CODECS[1:]:
        await run(f"produce: {codec}", round_trip, codec, compression_type=codec, linger_ms=20)
    await run("consume: seek, pause and resume", seek_and_pause)
    await run("consume: offsets for times", times)
    await run("commit: sync and automatic", commits)
    await run("group: range", come_and_go, "range", RangePartitionAssignor)
    await run("group: roundrobin", come_and_go, "roundrobin", RoundRobinPartitionAssignor)
    await run("group: sticky", come_and_go, "sticky", StickyPartitionAssignor)
    await run("group: static members restart without a rebalance", static)
    await run("transactions: commit and abort, with offsets", transactions)
    await run("admin: topics, partitions, configs, records", admin_topics)
    await run("admin: groups and their offsets", admin_groups)
    check.end()


check.version("aiokafka")
asyncio.run(main())
