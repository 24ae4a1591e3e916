import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.NoOffsetForPartitionException;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;

/** Consumers of given partitions: positions, commits, and looking around. */
final class Consuming {
    private static final int RECORDS = 100;

    private Consuming() {}

    static void run() throws Exception {
        String topic = Clients.topic("consume", 2);
        List<RecordMetadata> written = Clients.write(topic, 2, RECORDS);
        TopicPartition p0 = new TopicPartition(topic, 0);
        TopicPartition p1 = new TopicPartition(topic, 1);
        Check.run("consume: seek", () -> seek(written, p0, p1));
        Check.run("consume: an offset out of range", () -> outOfRange(p0));
        Check.run("consume: pause and resume", () -> pause(p0, p1));
        Check.run("consume: offsetsForTimes", Consuming::times);
        Check.run("consume: a few bytes at a time", () -> small(p0));
        Check.run("consume: topics and partitions", () -> topics(topic));
        Check.run("consume: read_committed", () -> readCommitted(p0));
        Check.run("commit: sync and async", () -> manual(written, p0));
        Check.run("commit: automatic", () -> automatic(topic));
    }

    private static void seek(List<RecordMetadata> written, TopicPartition p0, TopicPartition p1) throws Exception {
        try (KafkaConsumer<String, String> c = Clients.consumer()) {
            List<TopicPartition> all = List.of(p0, p1);
            c.assign(all);
            Map<TopicPartition, Long> begin = c.beginningOffsets(all);
            Map<TopicPartition, Long> end = c.endOffsets(all);
            Check.that(begin.get(p0) <= written.get(0).offset(), "the beginning is " + begin + ", the first record is " + written.get(0));
            Check.equal(written.get(RECORDS - 1).offset() + 1, end.get(p1), "the end");
            // Record 51 is in partition 1.
            c.pause(List.of(p0));
            c.seek(p1, written.get(51).offset());
            Check.equal("v51", next(c).value(), "the record sought");
            c.seekToEnd(all);
            Check.equal(end.get(p1), c.position(p1), "the position at the end");
            c.seekToBeginning(all);
            c.resume(all);
            Check.equal(RECORDS, Clients.readToEnd(c).size(), "records from the beginning");
            Check.equal(end.get(p0), c.position(p0), "the position after the last record");
        }
    }

    private static ConsumerRecord<String, String> next(KafkaConsumer<String, String> c) throws Exception {
        AtomicReference<ConsumerRecord<String, String>> first = new AtomicReference<>();
        Check.until("a record", () -> {
            for (ConsumerRecord<String, String> r : c.poll(Duration.ofMillis(100))) {
                first.compareAndSet(null, r);
            }
            return first.get() != null;
        });
        return first.get();
    }

    private static void outOfRange(TopicPartition p) throws Exception {
        try (KafkaConsumer<String, String> c = Clients.consumer()) {
            c.assign(List.of(p));
            long end = c.endOffsets(List.of(p)).get(p);
            c.seek(p, end + 1000);
            Check.equal("v0", next(c).value(), "the record after a reset to the earliest");
        }
        try (KafkaConsumer<String, String> c = Clients.consumer("auto.offset.reset", "none", "group.id", Clients.prefix + "no-offsets")) {
            c.assign(List.of(p));
            Check.fails(NoOffsetForPartitionException.class, "a poll without an offset", () -> {
                for (int i = 0; i < 100; i++) {
                    c.poll(Duration.ofMillis(100));
                }
            });
        }
    }

    private static void pause(TopicPartition p0, TopicPartition p1) throws Exception {
        try (KafkaConsumer<String, String> c = Clients.consumer()) {
            c.assign(List.of(p0, p1));
            c.seekToBeginning(List.of(p0, p1));
            c.pause(List.of(p0));
            long end = c.endOffsets(List.of(p1)).get(p1);
            List<String> got = new ArrayList<>();
            Check.until("the other partition read", () -> {
                for (ConsumerRecord<String, String> r : c.poll(Duration.ofMillis(100))) {
                    Check.equal(1, r.partition(), "the partition of a record while the other is paused");
                    got.add(r.value());
                }
                return c.position(p1) >= end;
            });
            Check.equal(RECORDS / 2, got.size(), "records of the partition that is not paused");
            c.resume(List.of(p0));
            Check.equal(RECORDS / 2, Clients.readToEnd(c).size(), "records of the partition that was paused");
        }
    }

    private static void times() throws Exception {
        String topic = Clients.topic("consume-times", 2);
        TopicPartition p0 = new TopicPartition(topic, 0);
        TopicPartition p1 = new TopicPartition(topic, 1);
        long t = System.currentTimeMillis() - 60_000;
        List<RecordMetadata> written = new ArrayList<>();
        try (KafkaProducer<String, String> p = Clients.producer("linger.ms", 0)) {
            for (int i = 0; i < 10; i++) {
                written.add(p.send(new ProducerRecord<>(topic, 0, t + i * 1000L, "k", "v" + i)).get(30, TimeUnit.SECONDS));
            }
        }
        try (KafkaConsumer<String, String> c = Clients.consumer()) {
            for (int i = 0; i < 10; i++) {
                OffsetAndTimestamp found = c.offsetsForTimes(Map.of(p0, t + i * 1000L - 500)).get(p0);
                Check.equal(written.get(i).offset(), found.offset(), "the offset of time " + i);
                Check.equal(t + i * 1000L, found.timestamp(), "the timestamp of time " + i);
            }
            Map<TopicPartition, OffsetAndTimestamp> none = c.offsetsForTimes(Map.of(p0, t + 20_000, p1, t));
            Check.that(none.get(p0) == null && none.get(p1) == null, "times after the last record have offsets: " + none);
        }
    }

    private static void small(TopicPartition p) throws Exception {
        try (KafkaConsumer<String, String> c = Clients.consumer(
            "max.partition.fetch.bytes", 100, "fetch.max.bytes", 100, "max.poll.records", 7, "fetch.min.bytes", 1)) {
            c.assign(List.of(p));
            c.seekToBeginning(List.of(p));
            Check.equal(RECORDS / 2, Clients.readToEnd(c).size(), "records");
        }
    }

    private static void topics(String topic) {
        try (KafkaConsumer<String, String> c = Clients.consumer()) {
            Check.that(c.listTopics().containsKey(topic), "the topic is not listed");
            Check.equal(2, c.partitionsFor(topic).size(), "partitions of the topic");
            Check.that(c.partitionsFor(topic).get(0).leader() != null, "a partition has no leader");
        }
    }

    private static void readCommitted(TopicPartition p) throws Exception {
        try (KafkaConsumer<String, String> c = Clients.consumer("isolation.level", "read_committed")) {
            c.assign(List.of(p));
            c.seekToBeginning(List.of(p));
            Check.equal(RECORDS / 2, Clients.readToEnd(c).size(), "records");
        }
    }

    private static void manual(List<RecordMetadata> written, TopicPartition p) throws Exception {
        String group = Clients.prefix + "manual";
        OffsetAndMetadata at10 = new OffsetAndMetadata(written.get(10).offset(), "ten");
        OffsetAndMetadata at20 = new OffsetAndMetadata(written.get(20).offset(), "");
        try (KafkaConsumer<String, String> c = Clients.consumer("group.id", group)) {
            c.assign(List.of(p));
            Check.that(c.committed(Set.of(p)).get(p) == null, "an offset is committed before the first");
            c.commitSync(Map.of(p, at10));
            Check.equal(at10, c.committed(Set.of(p)).get(p), "the committed offset");
            AtomicReference<Object> done = new AtomicReference<>();
            c.commitAsync(Map.of(p, at20), (offsets, error) -> done.set(error == null ? offsets : error));
            Check.until("the commit answered", () -> {
                c.poll(Duration.ofMillis(20));
                return done.get() != null;
            });
            Check.equal(Map.of(p, at20), done.get(), "what was committed");
        }
        try (KafkaConsumer<String, String> c = Clients.consumer("group.id", group)) {
            c.assign(List.of(p));
            Check.equal("v20", next(c).value(), "the first record after the commit");
            c.commitSync();
        }
        try (KafkaConsumer<String, String> c = Clients.consumer("group.id", group)) {
            c.assign(List.of(p));
            Check.equal(c.endOffsets(List.of(p)).get(p), c.position(p), "the position after all was committed");
        }
    }

    private static void automatic(String topic) throws Exception {
        String group = Clients.prefix + "automatic";
        Set<String> got = new HashSet<>();
        Map<TopicPartition, OffsetAndMetadata> want = new HashMap<>();
        try (KafkaConsumer<String, String> c = Clients.consumer(
            "group.id", group, "enable.auto.commit", "true", "auto.commit.interval.ms", 100)) {
            c.subscribe(List.of(topic));
            Check.until("all records read and committed", () -> {
                c.poll(Duration.ofMillis(100)).forEach(r -> got.add(r.value()));
                if (c.assignment().isEmpty()) {
                    return false;
                }
                Map<TopicPartition, OffsetAndMetadata> committed = c.committed(c.assignment());
                for (TopicPartition p : c.assignment()) {
                    long end = c.endOffsets(List.of(p)).get(p);
                    if (committed.get(p) == null || committed.get(p).offset() != end) {
                        return false;
                    }
                    want.put(p, committed.get(p));
                }
                return true;
            });
        }
        Check.equal(RECORDS, got.size(), "records");
        Check.equal(2, want.size(), "partitions with a committed offset");
    }
}
