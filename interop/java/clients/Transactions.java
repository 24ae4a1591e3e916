import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidTxnStateException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.TimeoutException;

/** Transactions: what readers see of them, how they end, and offsets in them. */
final class Transactions {
    private static final int PARTITIONS = 3;
    private static final String COMMITTED = "read_committed";
    private static final String UNCOMMITTED = "read_uncommitted";

    private Transactions() {}

    static void run() {
        Check.run("transactions: commit", Transactions::commit);
        Check.run("transactions: abort", Transactions::abort);
        Check.run("transactions: two at the same time", Transactions::interleaved);
        Check.run("transactions: fencing by a second producer", Transactions::fence);
        Check.run("transactions: a timeout", Transactions::timeout);
        Check.run("transactions: offsets", Transactions::offsets);
        Check.run("transactions: consume, transform, produce through a rebalance", Transactions::copy);
    }

    static KafkaProducer<String, String> producer(String id, Object... settings) {
        Map<String, Object> config = Clients.config("transactional.id", id, "linger.ms", 0, "retry.backoff.ms", 20);
        config.putAll(Clients.config(settings));
        KafkaProducer<String, String> p = Clients.producer(config.entrySet().stream()
            .flatMap(e -> java.util.stream.Stream.of(e.getKey(), e.getValue())).toArray());
        p.initTransactions();
        return p;
    }

    /** Sends records with some numbers, in turns to the partitions, and returns where they went. */
    static List<RecordMetadata> send(KafkaProducer<String, String> p, String topic, int from, int next) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (int i = from; i < next; i++) {
            sent.add(p.send(new ProducerRecord<>(topic, i % PARTITIONS, "k" + i, "v" + i)));
        }
        p.flush();
        List<RecordMetadata> written = new ArrayList<>();
        for (Future<RecordMetadata> f : sent) {
            written.add(f.get(30, TimeUnit.SECONDS));
        }
        return written;
    }

    /** What a reader gets of a topic, by partition and in order. */
    private static Map<Integer, List<String>> read(String topic, String isolation) throws Exception {
        Map<Integer, List<String>> got = new TreeMap<>();
        Clients.read(topic, PARTITIONS, "isolation.level", isolation, "fetch.max.wait.ms", 20)
            .forEach(r -> got.computeIfAbsent(r.partition(), k -> new ArrayList<>()).add(r.key() + "=" + r.value()));
        return got;
    }

    /** What send has written with ranges of numbers: from, next, from, next. */
    private static Map<Integer, List<String>> numbers(int... ranges) {
        Map<Integer, List<String>> all = new TreeMap<>();
        for (int r = 0; r < ranges.length; r += 2) {
            for (int i = ranges[r]; i < ranges[r + 1]; i++) {
                all.computeIfAbsent(i % PARTITIONS, k -> new ArrayList<>()).add("k" + i + "=v" + i);
            }
        }
        return all;
    }

    /** Demands what readers get: the first only of committed transactions, the second everything. */
    private static void readers(String topic, Map<Integer, List<String>> committed, Map<Integer, List<String>> all) throws Exception {
        // The coordinator answers a commit before all partitions know of it.
        Check.until("the committed records " + committed, () -> read(topic, COMMITTED).equals(committed));
        Check.equal(all, read(topic, UNCOMMITTED), "all records");
    }

    private static void commit() throws Exception {
        String topic = Clients.topic("txn-commit", PARTITIONS);
        try (KafkaProducer<String, String> p = producer(topic)) {
            for (int i = 0; i < 3; i++) {
                p.beginTransaction();
                send(p, topic, i * 30, i * 30 + 30);
                Check.equal(numbers(0, i * 30), read(topic, COMMITTED), "committed records while a transaction is open");
                p.commitTransaction();
                readers(topic, numbers(0, i * 30 + 30), numbers(0, i * 30 + 30));
            }
            p.beginTransaction();
            p.commitTransaction();
        }
    }

    private static void abort() throws Exception {
        String topic = Clients.topic("txn-abort", PARTITIONS);
        try (KafkaProducer<String, String> p = producer(topic)) {
            for (int i = 0; i < 5; i++) {
                p.beginTransaction();
                send(p, topic, i * 30, i * 30 + 30);
                if (i % 2 == 0) {
                    p.abortTransaction();
                } else {
                    p.commitTransaction();
                }
            }
            p.beginTransaction();
            p.abortTransaction();
        }
        readers(topic, numbers(30, 60, 90, 120), numbers(0, 150));
    }

    /** What is committed stays unread while an older transaction is open. */
    private static void interleaved() throws Exception {
        String topic = Clients.topic("txn-interleaved", PARTITIONS);
        try (KafkaProducer<String, String> a = producer(topic + "-a"); KafkaProducer<String, String> b = producer(topic + "-b")) {
            a.beginTransaction();
            b.beginTransaction();
            send(a, topic, 0, 30);
            send(b, topic, 30, 60);
            send(a, topic, 60, 90);
            b.commitTransaction();
            readers(topic, numbers(), numbers(0, 90));
            b.beginTransaction();
            send(b, topic, 90, 120);
            a.abortTransaction();
            readers(topic, numbers(30, 60), numbers(0, 120));
            b.abortTransaction();
        }
        Clients.write(topic, PARTITIONS, 30);
        Map<Integer, List<String>> committed = numbers(30, 60, 0, 30);
        readers(topic, committed, numbers(0, 120, 0, 30));
    }

    private static void fence() throws Exception {
        String topic = Clients.topic("txn-fence", PARTITIONS);
        KafkaProducer<String, String> first = producer(topic);
        first.beginTransaction();
        send(first, topic, 0, 30);
        try (KafkaProducer<String, String> second = producer(topic)) {
            readers(topic, numbers(), numbers(0, 30));
            second.beginTransaction();
            send(second, topic, 30, 60);
            Check.fails(ProducerFencedException.class, "a commit of the first", first::commitTransaction);
            second.commitTransaction();
        } finally {
            first.close(Duration.ZERO);
        }
        readers(topic, numbers(30, 60), numbers(0, 60));
    }

    private static void timeout() throws Exception {
        String topic = Clients.topic("txn-timeout", PARTITIONS);
        boolean version2 = Check.version().startsWith("4");
        KafkaProducer<String, String> late = producer(topic, "transaction.timeout.ms", 300);
        try {
            timeOut(late, topic, 0, 30);
            if (version2) {
                // Since the second version of transactions a producer that aborts, too, may go on.
                late.abortTransaction();
                timeOut(late, topic, 30, 60);
            }
            Check.fails(version2 ? InvalidTxnStateException.class : ProducerFencedException.class, "a commit after the timeout", late::commitTransaction);
        } finally {
            late.close(Duration.ZERO);
        }
        int next = version2 ? 60 : 30;
        try (KafkaProducer<String, String> p = producer(topic)) {
            p.beginTransaction();
            send(p, topic, next, next + 30);
            p.commitTransaction();
        }
        readers(topic, numbers(next, next + 30), numbers(0, next + 30));
    }

    /** Sends records in a transaction, and waits until the broker has aborted it. */
    private static void timeOut(KafkaProducer<String, String> late, String topic, int from, int next) throws Exception {
        TopicPartition p = new TopicPartition(topic, 0);
        late.beginTransaction();
        send(late, topic, from, next);
        try (KafkaConsumer<String, String> c = Clients.consumer("isolation.level", COMMITTED);
            KafkaConsumer<String, String> any = Clients.consumer("isolation.level", UNCOMMITTED)) {
            Check.until("the transaction is aborted", () -> c.endOffsets(List.of(p)).equals(any.endOffsets(List.of(p))));
        }
    }

    /** Offsets of an open transaction are neither committed nor to be overlooked. */
    private static void offsets() throws Exception {
        String topic = Clients.topic("txn-offsets", PARTITIONS);
        TopicPartition p = new TopicPartition(topic, 0);
        try (KafkaProducer<String, String> producer = producer(topic);
            KafkaConsumer<String, String> c = Clients.consumer("group.id", topic)) {
            for (long offset = 1; offset <= 4; offset++) {
                boolean commits = offset % 2 == 1;
                Long before = offset == 1 ? null : Long.valueOf(commits ? offset - 2 : offset - 1);
                producer.beginTransaction();
                send(producer, topic, 0, 3);
                producer.sendOffsetsToTransaction(Map.of(p, new OffsetAndMetadata(offset)), c.groupMetadata());
                var any = Clients.get(Clients.admin.listConsumerGroupOffsets(topic).partitionsToOffsetAndMetadata()).get(p);
                Check.equal(before, any == null ? null : any.offset(), "the offset while the transaction is open");
                // Consumers want offsets that no open transaction can change.
                Check.fails(TimeoutException.class, "a consumer that asks meanwhile", () -> c.committed(Set.of(p), Duration.ofMillis(300)));
                if (commits) {
                    producer.commitTransaction();
                } else {
                    producer.abortTransaction();
                }
                long after = c.committed(Set.of(p), Duration.ofSeconds(30)).get(p).offset();
                Check.equal(commits ? offset : before, after, "the offset after the transaction");
            }
        }
    }

    private static void copy() throws Exception {
        String from = Clients.topic("txn-copy-from", PARTITIONS);
        String to = Clients.topic("txn-copy-to", PARTITIONS);
        try (KafkaProducer<String, String> p = Clients.producer("acks", "all"); Copier a = new Copier("a", from, to)) {
            send(p, from, 0, 100);
            Check.until("some records are copied", () -> a.copied() >= 30);
            try (Copier b = new Copier("b", from, to)) {
                Check.until("the second has joined", b::joined);
                send(p, from, 100, 200);
                Check.until("all records are copied", () -> a.copied() + b.copied() >= 200);
                Check.that(a.aborted() > 0 && b.copied() > 0, "aborted " + a.aborted() + ", copied by the second " + b.copied());
            }
        }
        Map<Integer, List<String>> want = numbers(0, 200);
        want.values().forEach(v -> v.replaceAll(r -> r.replace("=", "=copy of ")));
        Check.until("the records committed", () -> read(to, COMMITTED).equals(want));
        Check.that(read(to, UNCOMMITTED).values().stream().mapToInt(List::size).sum() > 200, "no aborted records are there");
    }
}
