import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.TreeSet;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/**
 * A Kafka Streams application that counts words, at least once. Each word of a
 * line has a number that no other has ("word#17"), so that it can be counted in
 * two ways: simply, where a word that is processed again after a crash counts
 * again, and as the number of different numbers seen, which is exact.
 */
final class WordCount {
    static final String APPLICATION = "word-count";
    static final String LINES = "word-count-lines";
    static final String COUNTS = "word-count-counts";
    static final String EXACT = "word-count-exact";

    private WordCount() {}

    /** Runs until it is told to end. The arguments are the broker and a folder for state. */
    public static void main(String[] args) {
        Properties config = new Properties();
        config.put("application.id", APPLICATION);
        config.put("bootstrap.servers", args[0]);
        config.put("state.dir", args[1]);
        config.put("processing.guarantee", "at_least_once");
        config.put("num.stream.threads", 2);
        config.put("commit.interval.ms", 200);
        config.put("statestore.cache.max.bytes", 0);
        config.put("auto.offset.reset", "earliest");
        config.put("session.timeout.ms", 3000);
        config.put("heartbeat.interval.ms", 500);
        config.put("default.key.serde", Serdes.StringSerde.class);
        config.put("default.value.serde", Serdes.StringSerde.class);
        KafkaStreams streams = new KafkaStreams(topology().build(), config);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(20))));
        streams.start();
    }

    private static StreamsBuilder topology() {
        StreamsBuilder builder = new StreamsBuilder();
        // The new key makes a repartition topic, each table below has a changelog.
        KGroupedStream<String, String> words = builder.<String, String>stream(LINES)
            .flatMap((key, line) -> Arrays.stream(line.split(" ")).map(w -> KeyValue.pair(w.split("#")[0], w.split("#")[1])).toList())
            .groupByKey();
        words.count(Materialized.as("counts")).toStream().to(COUNTS, Produced.with(Serdes.String(), Serdes.Long()));
        words.aggregate(() -> "", (word, number, seen) -> add(seen, number), Materialized.as("exact"))
            .toStream().mapValues(seen -> (long) seen.split(",").length).to(EXACT, Produced.with(Serdes.String(), Serdes.Long()));
        return builder;
    }

    /** Adds to a set, which is written with commas. */
    private static String add(String set, String number) {
        TreeSet<String> all = new TreeSet<>(set.isEmpty() ? List.of() : List.of(set.split(",")));
        all.add(number);
        return String.join(",", all);
    }
}
