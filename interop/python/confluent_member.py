"""A member of a consumer group (KIP-848) that is a process of its own, so that it can crash and stall. The arguments are
its settings, as JSON, and what it subscribes to. It says in lines of JSON what comes to it, what goes and what it reads,
and leaves the group when its input ends. Only what it has said to have read may be committed."""

import json
import sys
import threading
import time

from confluent_kafka import Consumer, KafkaException

ending = threading.Event()


def say(event, partitions):
    print(json.dumps({"event": event, "at": time.time_ns(), "partitions": partitions}), flush=True)


def assigned(c, partitions):
    say("came", [(p.topic, p.partition) for p in partitions])
    c.incremental_assign(partitions)


def gone(c, partitions):
    say("went", [(p.topic, p.partition) for p in partitions])  # Before the broker knows: another may have them at once then.
    c.incremental_unassign(partitions)


def listen():
    sys.stdin.read()
    ending.set()


threading.Thread(target=listen, daemon=True).start()
consumer = Consumer(json.loads(sys.argv[1]) | {"enable.auto.offset.store": False})
consumer.subscribe([sys.argv[2]], on_assign=assigned, on_revoke=gone, on_lost=gone)
while not ending.is_set():
    m = consumer.poll(0.1)
    if m is None or m.error() is not None:
        continue
    say("read", [(m.topic(), m.partition(), m.offset())])
    try:
        consumer.store_offsets(m)
    except KafkaException:
        pass  # The partition has gone meanwhile.
consumer.close()
