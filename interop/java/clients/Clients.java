import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.time.Duration;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * The Java clients of one version, against the broker that the first argument
 * names. The same sources run with several versions of kafka-clients; what only
 * newer ones have is in the class Newer, which is there or not. No check relies
 * on offsets without gaps: a store may leave some.
 */
final class Clients {
    static String bootstrap;
    /** What the names of all topics and groups begin with. */
    static String prefix;
    static Admin admin;

    private Clients() {}

    public static void main(String[] args) throws Exception {
        Check.begin();
        bootstrap = args[0];
        prefix = "java-" + Check.version().replace('.', '-') + "-";
        admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
        Object consumerGroups = newer("ConsumerGroups", "start");
        Object shareGroups = newer("ShareGroups", "start");
        Producing.run();
        Consuming.run();
        Groups.run();
        Transactions.run();
        AdminOfTopics.run();
        AdminOfGroups.run();
        AdminOfBrokers.run();
        newer("Newer", "run");
        if (consumerGroups != null) {
            ((Runnable) consumerGroups).run();
        }
        if (shareGroups != null) {
            ((Runnable) shareGroups).run();
        }
        Check.end();
    }

    /** Calls a method of a class that is there if these clients are new enough for what is in it. */
    private static Object newer(String name, String method) throws ReflectiveOperationException {
        try {
            return Class.forName(name).getDeclaredMethod(method).invoke(null);
        } catch (ClassNotFoundException e) {
            return null;
        }
    }

    static <T> T get(KafkaFuture<T> future) throws Exception {
        return future.get(30, TimeUnit.SECONDS);
    }

    /** Creates a topic and returns its name. */
    static String topic(String name, int partitions) throws Exception {
        get(admin.createTopics(List.of(new NewTopic(prefix + name, partitions, (short) 1))).all());
        return prefix + name;
    }

    /** A configuration of the address and what is given as key, value, key, value. */
    static Map<String, Object> config(Object... settings) {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", bootstrap);
        for (int i = 0; i < settings.length; i += 2) {
            config.put((String) settings[i], settings[i + 1]);
        }
        return config;
    }

    static KafkaProducer<String, String> producer(Object... settings) {
        return new KafkaProducer<>(config(settings), new StringSerializer(), new StringSerializer());
    }

    static KafkaConsumer<String, String> consumer(Object... settings) {
        Map<String, Object> config = config("auto.offset.reset", "earliest", "enable.auto.commit", "false");
        config.putAll(config(settings));
        return new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
    }

    /** Writes a record with each of some values, in turns to the partitions, and returns where they went. */
    static List<RecordMetadata> write(String topic, int partitions, int n) throws Exception {
        List<RecordMetadata> written = new ArrayList<>();
        try (KafkaProducer<String, String> p = producer("acks", "all")) {
            List<java.util.concurrent.Future<RecordMetadata>> sent = new ArrayList<>();
            for (int i = 0; i < n; i++) {
                sent.add(p.send(new ProducerRecord<>(topic, i % partitions, "k" + i, "v" + i)));
            }
            for (var f : sent) {
                written.add(f.get(30, TimeUnit.SECONDS));
            }
        }
        return written;
    }

    static List<TopicPartition> partitions(String topic, int n) {
        List<TopicPartition> all = new ArrayList<>();
        for (int p = 0; p < n; p++) {
            all.add(new TopicPartition(topic, p));
        }
        return all;
    }

    /** Reads a topic from the beginning to its present end. */
    static List<ConsumerRecord<String, String>> read(String topic, int partitions, Object... settings) throws Exception {
        try (KafkaConsumer<String, String> c = consumer(settings)) {
            List<TopicPartition> all = partitions(topic, partitions);
            c.assign(all);
            c.seekToBeginning(all);
            return readToEnd(c);
        }
    }

    /** Reads what is assigned from where it is to its present end. */
    static List<ConsumerRecord<String, String>> readToEnd(KafkaConsumer<String, String> c) throws Exception {
        Map<TopicPartition, Long> ends = c.endOffsets(c.assignment());
        List<ConsumerRecord<String, String>> records = new ArrayList<>();
        Check.until("all records of " + ends + " read", () -> {
            c.poll(Duration.ofMillis(100)).forEach(records::add);
            for (var end : ends.entrySet()) {
                if (c.position(end.getKey()) < end.getValue()) {
                    return false;
                }
            }
            return true;
        });
        return records;
    }
}
