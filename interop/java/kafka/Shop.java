import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.Locale;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;

/**
 * A Kafka Streams application of the streams protocol (KIP-1071). An order has its number as
 * its key, and "customer item" as its value. Of each, the application writes it again, how many
 * its customer has, the name of the customer, and the price of the item.
 */
final class Shop {
    static final String ORDERS = "-orders";
    static final String CUSTOMERS = "-customers";
    static final String ITEMS = "-items";
    static final String COPIES = "-copies";
    static final String COUNTS = "-counts";
    static final String NAMED = "-named";
    static final String PRICED = "-priced";

    private Shop() {}

    /** The arguments are the broker, a folder for state, the application, its guarantee, and where its queries would be answered. */
    public static void main(String[] args) {
        Properties config = new Properties();
        config.put("group.protocol", "streams");
        config.put("bootstrap.servers", args[0]);
        config.put("state.dir", args[1]);
        config.put("application.id", args[2]);
        config.put("processing.guarantee", args[3]);
        config.put("application.server", args[4]);
        config.put("num.stream.threads", 2);
        config.put("commit.interval.ms", 200);
        config.put("producer.linger.ms", 5);
        config.put("producer.transaction.timeout.ms", 4000);
        config.put("statestore.cache.max.bytes", 0);
        config.put("auto.offset.reset", "earliest");
        config.put("default.key.serde", Serdes.StringSerde.class);
        config.put("default.value.serde", Serdes.StringSerde.class);
        KafkaStreams streams = new KafkaStreams(topology(args[2]), config);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(20))));
        streams.start();
        tell(streams, Path.of(args[1]));
    }

    private static Topology topology(String app) {
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> orders = builder.stream(app + ORDERS);
        orders.mapValues(o -> o.toUpperCase(Locale.ROOT)).to(app + COPIES);
        // The new key makes a repartition topic, the table has a changelog.
        orders.groupBy((number, o) -> o.split(" ")[0]).count(Materialized.as("counts"))
            .toStream().mapValues(n -> Long.toString(n)).to(app + COUNTS);
        orders.map((number, o) -> KeyValue.pair(o.split(" ")[0], number))
            .join(builder.<String, String>table(app + CUSTOMERS), (number, name) -> number + " " + name).to(app + NAMED);
        GlobalKTable<String, String> items = builder.globalTable(app + ITEMS);
        orders.join(items, (number, o) -> o.split(" ")[1], (o, price) -> price).to(app + PRICED);
        return builder.build();
    }

    /** Writes down again and again who can be asked for counts, as this instance knows it. */
    private static void tell(KafkaStreams streams, Path folder) {
        Thread thread = new Thread(() -> {
            try {
                Files.createDirectories(folder);
                while (true) {
                    String hosts = streams.state() + " " + streams.streamsMetadataForStore("counts").stream()
                        .filter(m -> !m.topicPartitions().isEmpty()).map(m -> m.hostInfo().host()).sorted().collect(Collectors.joining(" "));
                    Files.writeString(folder.resolve("hosts.new"), hosts);
                    Files.move(folder.resolve("hosts.new"), folder.resolve("hosts"), StandardCopyOption.REPLACE_EXISTING);
                    Thread.sleep(100);
                }
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            } catch (InterruptedException | IllegalStateException e) {
                // It ends, or has not begun.
            }
        });
        thread.setDaemon(true);
        thread.start();
    }
}
