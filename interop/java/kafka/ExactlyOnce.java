import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.LongStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Runs ExactCount, kills it in the middle of its transactions, and starts it again. */
final class ExactlyOnce {
    private static final int PARTITIONS = 2;
    /** How many words there are at least before and after the kill, and how many come at a time while it is waited for. */
    private static final int WORDS = 1000;
    private static final int MORE = 10;
    private static final List<String> DIFFERENT = List.of("ant", "bee", "cat", "dog", "eel");

    private ExactlyOnce() {}

    private static String bootstrap;
    private static Jvm application;
    private static int written;
    /** The counts of each word, in the order in which they are read. */
    private static final Map<String, List<Long>> counts = new TreeMap<>();

    static void run(String address, Admin admin, Path state) throws Exception {
        bootstrap = address;
        admin.createTopics(List.of(new NewTopic(ExactCount.WORDS, PARTITIONS, (short) 1),
            new NewTopic(ExactCount.COUNTS, PARTITIONS, (short) 1))).all().get(30, TimeUnit.SECONDS);
        try (KafkaConsumer<String, Long> c = results("read_committed"); KafkaConsumer<String, Long> any = results("read_uncommitted")) {
            Check.run("exactly once: starts", () -> {
                write(WORDS);
                application = new Jvm("ExactCount", bootstrap, state.resolve("1").toString());
                // Words keep coming: an application that has counted them all opens no transaction again.
                Check.until("some words counted and more on the way", () -> {
                    write(MORE);
                    return read(c) > WORDS / 5 && open(c, any);
                });
            });
            Check.run("exactly once: killed and started again without its state, each word counted once", () -> {
                application.close();
                write(WORDS);
                application = new Jvm("ExactCount", bootstrap, state.resolve("2").toString());
                Check.until("all words counted", () -> read(c) >= written);
                application.stop();
                read(c);
                exact();
            });
        } finally {
            if (application != null) {
                Check.explain("The application printed:\n" + application.output());
                application.close();
            }
        }
    }

    private static KafkaConsumer<String, Long> results(String isolation) {
        KafkaConsumer<String, Long> c = new KafkaConsumer<>(
            Map.of("bootstrap.servers", bootstrap, "auto.offset.reset", "earliest", "isolation.level", isolation),
            new StringDeserializer(), new LongDeserializer());
        c.assign(List.of(new TopicPartition(ExactCount.COUNTS, 0), new TopicPartition(ExactCount.COUNTS, 1)));
        return c;
    }

    /** Reads what came since the last time, and returns how many counts there are. */
    private static int read(KafkaConsumer<String, Long> c) {
        c.poll(Duration.ofMillis(100)).forEach(r -> counts.computeIfAbsent(r.key(), k -> new ArrayList<>()).add(r.value()));
        return counts.values().stream().mapToInt(List::size).sum();
    }

    /** Writes that many words, as many of each in each round: MORE is a multiple of their number. */
    private static void write(int words) throws Exception {
        try (KafkaProducer<String, String> p = new KafkaProducer<>(Map.of("bootstrap.servers", bootstrap, "linger.ms", 5),
            new StringSerializer(), new StringSerializer())) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int end = written + words; written < end; written++) {
                sent.add(p.send(new ProducerRecord<>(ExactCount.WORDS, written % PARTITIONS, null, DIFFERENT.get(written % DIFFERENT.size()))));
            }
            for (Future<RecordMetadata> f : sent) {
                f.get(30, TimeUnit.SECONDS);
            }
        }
    }

    /** Each word has all counts from 1 on, in order. */
    private static void exact() {
        List<Long> want = LongStream.rangeClosed(1, written / DIFFERENT.size()).boxed().toList();
        for (String word : DIFFERENT) {
            Check.equal(want, counts.get(word), "the counts of " + word);
        }
    }

    /** Whether a transaction is open: what was written some time ago is not committed now. */
    private static boolean open(KafkaConsumer<String, Long> committed, KafkaConsumer<String, Long> any) {
        Map<TopicPartition, Long> ends = any.endOffsets(any.assignment());
        return committed.endOffsets(committed.assignment()).entrySet().stream().anyMatch(e -> e.getValue() < ends.get(e.getKey()));
    }
}
