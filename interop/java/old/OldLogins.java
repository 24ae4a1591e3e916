import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.ExecutionException;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.errors.AuthenticationException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** A client of 2018 logs in to the broker of which interop/matrix/secured.go tells, as the user who may do everything. */
final class OldLogins {
    private static final int RECORDS = 10;
    private static final String PASSWORD = "admin-secret";

    private OldLogins() {}

    private static String env(String name) {
        return System.getenv("MUSTER_MATRIX_" + name);
    }

    private static Properties settings(String listener, String mechanism, String password) {
        String module = mechanism.equals("PLAIN") ? "plain.PlainLoginModule" : "scram.ScramLoginModule";
        Properties p = new Properties();
        p.put("bootstrap.servers", env(listener));
        p.put("security.protocol", listener);
        p.put("sasl.mechanism", mechanism);
        p.put("sasl.jaas.config", "org.apache.kafka.common.security." + module + " required username=\"admin\" password=\"" + password + "\";");
        p.put("key.serializer", StringSerializer.class.getName());
        p.put("value.serializer", StringSerializer.class.getName());
        p.put("key.deserializer", StringDeserializer.class.getName());
        p.put("value.deserializer", StringDeserializer.class.getName());
        p.put("auto.offset.reset", "earliest");
        p.put("enable.auto.commit", "false");
        return p;
    }

    private static void produce(Properties settings, String topic) throws Exception {
        try (KafkaProducer<String, String> p = new KafkaProducer<>(settings)) {
            for (int i = 0; i < RECORDS; i++) {
                p.send(new ProducerRecord<>(topic, Integer.toString(i))).get();
            }
        }
    }

    private static void roundTrip(String mechanism) throws Exception {
        String topic = "old-java-" + mechanism;
        Properties settings = settings("SASL_PLAINTEXT", mechanism, PASSWORD);
        settings.put("group.id", topic);
        produce(settings, topic);
        List<String> written = new ArrayList<>(), read = new ArrayList<>();
        try (KafkaConsumer<String, String> c = new KafkaConsumer<>(settings)) {
            c.subscribe(Collections.singletonList(topic));
            for (long end = System.currentTimeMillis() + 60_000; read.size() < RECORDS && System.currentTimeMillis() < end; ) {
                for (ConsumerRecord<String, String> r : c.poll(100)) {
                    written.add(Integer.toString(written.size()));
                    read.add(r.value());
                }
            }
            c.commitSync();
        }
        Check.equal(RECORDS, read.size(), "records");
        Check.equal(written, read, "records");
    }

    private static void refused(String mechanism) throws Exception {
        try {
            produce(settings("SASL_PLAINTEXT", mechanism, "guessed"), "old-java-refused");
        } catch (ExecutionException e) {
            if (e.getCause() instanceof AuthenticationException) {
                return;
            }
            throw e;
        }
        throw new AssertionError("the record is written");
    }

    public static void main(String[] args) throws Exception {
        Check.begin();
        for (String mechanism : new String[] {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}) {
            Check.run("login: " + mechanism + " over TCP", () -> roundTrip(mechanism));
        }
        for (String mechanism : new String[] {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}) {
            Check.run("refused login: wrong password by " + mechanism, () -> refused(mechanism));
        }
        Check.end();
    }
}
