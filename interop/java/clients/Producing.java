import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.header.Header;

/** Producers, with each level of acknowledgement and each codec. */
final class Producing {
    private static final int PARTITIONS = 3;
    private static final int RECORDS = 300;

    private Producing() {}

    static void run() {
        for (String acks : List.of("0", "1", "all")) {
            Check.run("produce: acks=" + acks, () -> roundTrip("acks-" + acks, "acks", acks, "enable.idempotence", "false"));
        }
        Check.run("produce: idempotent", () -> roundTrip("idempotent", "acks", "all", "enable.idempotence", "true"));
        for (String codec : List.of("gzip", "snappy", "lz4", "zstd")) {
            Check.run("produce: " + codec, () -> roundTrip("codec-" + codec, "compression.type", codec, "linger.ms", "20"));
        }
        Check.run("produce: null keys and values", Producing::nulls);
        Check.run("produce: a topic created on the way", Producing::autoCreated);
        Check.run("produce: a record that is too large", Producing::tooLarge);
    }

    private static void roundTrip(String name, Object... settings) throws Exception {
        String topic = Clients.topic("produce-" + name, PARTITIONS);
        Map<Integer, List<String>> written = new HashMap<>();
        long now = System.currentTimeMillis();
        try (KafkaProducer<String, String> p = Clients.producer(settings)) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int i = 0; i < RECORDS; i++) {
                ProducerRecord<String, String> r = new ProducerRecord<>(topic, i % PARTITIONS, now + i, "key" + i % 7, "value" + i + "x".repeat(i));
                r.headers().add("number", Integer.toString(i).getBytes(StandardCharsets.UTF_8)).add("none", null);
                sent.add(p.send(r));
                written.computeIfAbsent(r.partition(), k -> new ArrayList<>())
                    .add(text(r.key(), r.value(), r.timestamp(), r.headers().toArray()));
            }
            for (Future<RecordMetadata> f : sent) {
                f.get(30, TimeUnit.SECONDS);
            }
        }
        Map<Integer, List<String>> got = new HashMap<>();
        // With acks=0 the producer may be ahead of the broker.
        Check.until("as many records as were written", () -> {
            got.clear();
            List<ConsumerRecord<String, String>> records = Clients.read(topic, PARTITIONS);
            records.forEach(r -> got.computeIfAbsent(r.partition(), k -> new ArrayList<>())
                .add(text(r.key(), r.value(), r.timestamp(), r.headers().toArray())));
            return records.size() >= RECORDS;
        });
        for (var partition : written.entrySet()) {
            List<String> read = got.get(partition.getKey());
            Check.equal(partition.getValue().size(), read.size(), "records of partition " + partition.getKey());
            for (int i = 0; i < read.size(); i++) {
                Check.equal(partition.getValue().get(i), read.get(i), "record " + i + " of partition " + partition.getKey());
            }
        }
    }

    private static String text(String key, String value, long timestamp, Header[] headers) {
        StringBuilder text = new StringBuilder(key + "=" + value + "@" + timestamp);
        for (Header h : headers) {
            text.append(' ').append(h.key()).append(':').append(Arrays.toString(h.value()));
        }
        return text.toString();
    }

    private static void nulls() throws Exception {
        String topic = Clients.topic("produce-nulls", 1);
        try (KafkaProducer<String, String> p = Clients.producer()) {
            p.send(new ProducerRecord<>(topic, null, "no key"));
            p.send(new ProducerRecord<>(topic, "no value", null));
            p.send(new ProducerRecord<>(topic, "", "")).get(30, TimeUnit.SECONDS);
        }
        List<String> got = new ArrayList<>();
        Clients.read(topic, 1).forEach(r -> got.add(r.key() + "=" + r.value()));
        Check.equal(List.of("null=no key", "no value=null", "="), got, "records");
    }

    private static void autoCreated() throws Exception {
        String topic = Clients.prefix + "produce-auto";
        try (KafkaProducer<String, String> p = Clients.producer()) {
            p.send(new ProducerRecord<>(topic, "k", "v")).get(30, TimeUnit.SECONDS);
        }
        Check.equal("v", Clients.read(topic, 1).get(0).value(), "the record");
    }

    private static void tooLarge() throws Exception {
        String topic = Clients.topic("produce-large", 1);
        String value = "x".repeat(2 << 20);
        try (KafkaProducer<String, String> p = Clients.producer("max.request.size", 8 << 20)) {
            Check.fails(RecordTooLargeException.class, "a record of 2 MB",
                () -> p.send(new ProducerRecord<>(topic, "k", value)).get(30, TimeUnit.SECONDS));
            p.send(new ProducerRecord<>(topic, "k", value.substring(0, 1_000_000))).get(30, TimeUnit.SECONDS);
        }
        Check.equal(1_000_000, Clients.read(topic, 1).get(0).value().length(), "the length of the record");
    }
}
