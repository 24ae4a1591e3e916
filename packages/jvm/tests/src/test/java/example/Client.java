package example;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Real clients. */
final class Client {
    private Client() {}

    /** Writes a record and reads it by a group. */
    static String roundTrip(String servers, String topic) throws Exception {
        Map<String, Object> producing = Map.of("bootstrap.servers", servers);
        try (var producer = new KafkaProducer<>(producing, new StringSerializer(), new StringSerializer())) {
            producer.send(new ProducerRecord<>(topic, "key", "hello")).get();
        }
        Map<String, Object> consuming = Map.of("bootstrap.servers", servers, "group.id", "g-" + topic, "auto.offset.reset", "earliest");
        try (var consumer = new KafkaConsumer<>(consuming, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            for (int tries = 0; tries < 60; tries++) {
                for (var record : consumer.poll(Duration.ofSeconds(1))) {
                    return record.value();
                }
            }
        }
        throw new AssertionError("no record within a minute");
    }
}
