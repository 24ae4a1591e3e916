import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Kafka Connect with exactly-once support for sources: the one worker is killed
 * while it takes lines from a file to a topic, a few in each transaction, and
 * another one goes on.
 */
final class ConnectOnce {
    private static final int LINES = 400;
    private static final String TOPIC = "connect-once-lines";

    private ConnectOnce() {}

    static void run(String bootstrap, Path folder) throws Exception {
        Path in = folder.resolve("in");
        // The connector keeps up to 1024 characters for itself when it hands over a few lines only, until the file grows.
        List<String> lines = IntStream.range(0, LINES + 200).mapToObj(i -> "line " + i).toList();
        Files.write(in, lines);
        List<String> settings = new ArrayList<>(List.of("exactly.once.source.support=enabled",
            "session.timeout.ms=3000", "rebalance.timeout.ms=5000", "value.converter=org.apache.kafka.connect.storage.StringConverter"));
        Map<String, String> connector = new HashMap<>(Map.of("connector.class", "FileStreamSource", "tasks.max", "1",
            "file", in.toString(), "topic", TOPIC, "batch.size", "10", "exactly.once.support", "required", "transaction.boundary", "poll",
            "topic.creation.default.partitions", "1", "topic.creation.default.replication.factor", "1"));
        String[] all = settings.toArray(new String[0]);
        String first = Connect.worker(3, "connect-once", all);
        Connect.answer();
        Connect.call("PUT", "/connectors/once/config", connector);
        List<String> got = new ArrayList<>();
        try (KafkaConsumer<String, String> c = new KafkaConsumer<>(
            Map.of("bootstrap.servers", bootstrap, "auto.offset.reset", "earliest", "isolation.level", "read_committed", "allow.auto.create.topics", false),
            new StringDeserializer(), new StringDeserializer())) {
            c.assign(List.of(new TopicPartition(TOPIC, 0)));
            read(c, got, LINES / 4);
            Connect.kill(first);
            Connect.worker(4, "connect-once", all);
            Connect.answer();
            read(c, got, LINES);
            Connect.state("once", "RUNNING");
            c.poll(Duration.ofMillis(200)).forEach(r -> got.add(r.value()));
        }
        Check.equal(lines.subList(0, got.size()), got, "the lines in the topic");
        Connect.call("DELETE", "/connectors/once", null);
    }

    private static void read(KafkaConsumer<String, String> c, List<String> got, int n) throws Exception {
        Check.until(n + " lines in the topic", () -> {
            c.poll(Duration.ofMillis(100)).forEach(r -> got.add(r.value()));
            return got.size() >= n;
        });
    }
}
