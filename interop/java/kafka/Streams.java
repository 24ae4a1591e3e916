import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Runs WordCount against the broker that the first argument names, kills it in the
 * middle and starts it again; and then ExactCount in the same way.
 */
final class Streams {
    private static final int PARTITIONS = 2;
    private static final int LINES = 200;
    private static final List<String> WORDS = List.of("ant", "bee", "cat", "dog", "eel");

    private Streams() {}

    private static String bootstrap;
    private static Admin admin;
    private static Jvm application;
    private static final Map<String, Long> written = new HashMap<>();

    public static void main(String[] args) throws Exception {
        Check.begin();
        bootstrap = args[0];
        admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
        Path state = Files.createTempDirectory("streams");
        try (KafkaConsumer<String, Long> results = results()) {
            Check.run("word count: starts", () -> start(state.resolve("1"), results));
            Check.run("word count: killed and started again without its state, still exact", () -> restart(state.resolve("2"), results));
            Check.run("word count: repartition and changelog topics", Streams::topics);
            Check.run("word count: commits and ends", Streams::end);
            Check.run("kafka-streams-application-reset: all", () -> reset());
            ExactlyOnce.run(bootstrap, admin, state.resolve("exactly-once"));
        } catch (Throwable t) {
            Check.run("set up", () -> {
                throw t;
            });
        } finally {
            if (application != null) {
                Check.explain("The application printed:\n" + application.output());
                application.close();
            }
            remove(state);
        }
        Check.end();
    }

    private static KafkaConsumer<String, Long> results() throws Exception {
        List<NewTopic> topics = Stream.of(WordCount.LINES, WordCount.COUNTS, WordCount.EXACT)
            .map(t -> new NewTopic(t, PARTITIONS, (short) 1)).toList();
        admin.createTopics(topics).all().get();
        KafkaConsumer<String, Long> c = new KafkaConsumer<>(Map.of("bootstrap.servers", bootstrap, "auto.offset.reset", "earliest"),
            new StringDeserializer(), new LongDeserializer());
        List<TopicPartition> all = new ArrayList<>();
        for (int p = 0; p < PARTITIONS; p++) {
            all.add(new TopicPartition(WordCount.COUNTS, p));
            all.add(new TopicPartition(WordCount.EXACT, p));
        }
        c.assign(all);
        return c;
    }

    private static final Map<String, Long> counts = new HashMap<>();
    private static final Map<String, Long> exact = new HashMap<>();

    /** Reads what came since the last time. The newest count of a word is the one in force. */
    private static void read(KafkaConsumer<String, Long> results) {
        results.poll(Duration.ofMillis(100)).forEach(r -> (r.topic().equals(WordCount.COUNTS) ? counts : exact).put(r.key(), r.value()));
    }

    /** Writes lines of words whose numbers begin with the number of the line. */
    private static void write(int from, int next) throws Exception {
        try (KafkaProducer<String, String> p = new KafkaProducer<>(Map.of("bootstrap.servers", bootstrap, "linger.ms", 1),
            new StringSerializer(), new StringSerializer())) {
            for (int line = from; line < next; line++) {
                StringBuilder text = new StringBuilder();
                for (int i = 0; i < 10; i++) {
                    String word = WORDS.get((line * i + i) % WORDS.size());
                    text.append(word).append('#').append(line * 10 + i).append(' ');
                    written.merge(word, 1L, Long::sum);
                }
                p.send(new ProducerRecord<>(WordCount.LINES, line % PARTITIONS, null, text.toString().strip()));
            }
        }
    }

    private static void start(Path state, KafkaConsumer<String, Long> results) throws Exception {
        write(0, LINES / 2);
        application = new Jvm("WordCount", bootstrap, state.toString());
        Check.until("some words counted", () -> {
            read(results);
            return !counts.isEmpty() && !exact.isEmpty();
        });
    }

    private static void restart(Path state, KafkaConsumer<String, Long> results) throws Exception {
        write(LINES / 2, LINES * 3 / 4);
        application.close();
        write(LINES * 3 / 4, LINES);
        application = new Jvm("WordCount", bootstrap, state.toString());
        try {
            Check.until("all words counted", () -> {
                read(results);
                return exact.equals(written) && written.entrySet().stream().allMatch(w -> counts.getOrDefault(w.getKey(), 0L) >= w.getValue());
            });
        } catch (AssertionError e) {
            throw new AssertionError("written " + written + ", counted " + counts + ", exactly " + exact, e);
        }
    }

    private static void topics() throws Exception {
        Map<String, String> want = Map.of("counts-repartition", "delete", "counts-changelog", "compact", "exact-changelog", "compact");
        for (var topic : want.entrySet()) {
            String name = WordCount.APPLICATION + "-" + topic.getKey();
            ConfigResource r = new ConfigResource(ConfigResource.Type.TOPIC, name);
            Check.equal(topic.getValue(), admin.describeConfigs(List.of(r)).all().get().get(r).get("cleanup.policy").value(), "cleanup.policy of " + name);
        }
    }

    private static void end() throws Exception {
        try (KafkaConsumer<String, String> c = new KafkaConsumer<>(Map.of("bootstrap.servers", bootstrap), new StringDeserializer(), new StringDeserializer())) {
            Check.until("all lines committed", () -> {
                var committed = admin.listConsumerGroupOffsets(WordCount.APPLICATION).partitionsToOffsetAndMetadata().get();
                for (int i = 0; i < PARTITIONS; i++) {
                    TopicPartition p = new TopicPartition(WordCount.LINES, i);
                    if (committed.get(p) == null || committed.get(p).offset() != c.endOffsets(List.of(p)).get(p)) {
                        return false;
                    }
                }
                return true;
            });
        }
        application.stop();
    }

    private static void reset() throws Exception {
        Tool.bootstrap = bootstrap;
        Tool.capture();
        // The threads of a Streams application stay members when it ends.
        Check.until("the group is empty", () -> admin.describeConsumerGroups(List.of(WordCount.APPLICATION)).all().get()
            .get(WordCount.APPLICATION).members().isEmpty());
        new Tool("org.apache.kafka.tools.StreamsResetter").run("--application-id", WordCount.APPLICATION, "--input-topics", WordCount.LINES);
        Set<String> left = new TreeSet<>(admin.listTopics().names().get());
        left.removeIf(t -> !t.startsWith(WordCount.APPLICATION));
        Check.equal(Set.of(WordCount.LINES, WordCount.COUNTS, WordCount.EXACT), left, "topics");
    }

    private static void remove(Path folder) throws Exception {
        try (Stream<Path> files = Files.walk(folder)) {
            for (Path f : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(f);
            }
        }
    }
}
