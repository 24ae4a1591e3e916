import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/**
 * A Kafka Streams application that counts words, exactly once. It writes each
 * count that it reaches, so that a word that was counted twice, or forgotten, is
 * to be seen in what it wrote.
 */
final class ExactCount {
    static final String APPLICATION = "exact-count";
    static final String WORDS = "exact-count-words";
    static final String COUNTS = "exact-count-counts";

    private ExactCount() {}

    /** Runs until it is told to end. The arguments are the broker and a folder for state. */
    public static void main(String[] args) {
        Properties config = new Properties();
        config.put("application.id", APPLICATION);
        config.put("bootstrap.servers", args[0]);
        config.put("state.dir", args[1]);
        config.put("processing.guarantee", "exactly_once_v2");
        config.put("num.stream.threads", 2);
        config.put("commit.interval.ms", 300);
        config.put("producer.linger.ms", 5);
        config.put("statestore.cache.max.bytes", 0);
        config.put("auto.offset.reset", "earliest");
        config.put("session.timeout.ms", 2000);
        config.put("heartbeat.interval.ms", 300);
        config.put("producer.transaction.timeout.ms", 2000);
        config.put("default.key.serde", Serdes.StringSerde.class);
        config.put("default.value.serde", Serdes.StringSerde.class);
        KafkaStreams streams = new KafkaStreams(topology().build(), config);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(20))));
        streams.start();
    }

    private static StreamsBuilder topology() {
        StreamsBuilder builder = new StreamsBuilder();
        // The new key makes a repartition topic, the table has a changelog.
        builder.<String, String>stream(WORDS).peek((key, word) -> rest()).groupBy((key, word) -> word)
            .count(Materialized.as("counts")).toStream().to(COUNTS, Produced.with(Serdes.String(), Serdes.Long()));
        return builder;
    }

    /** Takes its time, so that it can be killed in the middle. */
    private static void rest() {
        try {
            Thread.sleep(1);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
