import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.ListConsumerGroupsOptions;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.UnknownTopicIdException;

/** What the Java clients can do since some release of 3.x. */
final class Newer {
    private Newer() {}

    private static final Admin admin = Clients.admin;

    static void run() throws Exception {
        Check.run("admin: topics by id", Newer::byId);
        Check.run("admin: describe producers", Newer::producers);
        Check.run("admin: the offset of the newest record", Newer::maxTimestamp);
        Check.run("admin: offsets of several groups at once", Newer::severalGroups);
        Check.run("admin: groups by type", Newer::byType);
        AdminOfTransactions.run();
    }

    private static void byId() throws Exception {
        String name = Clients.topic("by-id", 2);
        Uuid id = Clients.get(admin.describeTopics(List.of(name)).allTopicNames()).get(name).topicId();
        var ids = TopicCollection.ofTopicIds(List.of(id));
        Check.equal(name, Clients.get(admin.describeTopics(ids).allTopicIds()).get(id).name(), "the name of the topic id");
        Clients.get(admin.deleteTopics(ids).all());
        Check.fails(UnknownTopicIdException.class, "describing it then", () -> Clients.get(admin.describeTopics(ids).allTopicIds()));
    }

    private static void producers() throws Exception {
        TopicPartition p = new TopicPartition(Clients.topic("producers", 1), 0);
        try (KafkaProducer<String, String> producer = Clients.producer("enable.idempotence", "true", "acks", "all")) {
            for (int i = 0; i < 3; i++) {
                producer.send(new ProducerRecord<>(p.topic(), "k", "v")).get(30, TimeUnit.SECONDS);
            }
        }
        var active = Clients.get(admin.describeProducers(List.of(p)).partitionResult(p)).activeProducers();
        Check.equal(1, active.size(), "producers");
        Check.that(active.get(0).producerId() >= 0 && active.get(0).lastSequence() == 2, "the producer is " + active);
    }

    private static void maxTimestamp() throws Exception {
        TopicPartition p = new TopicPartition(Clients.topic("max-timestamp", 1), 0);
        long now = System.currentTimeMillis();
        RecordMetadata newest;
        try (KafkaProducer<String, String> producer = Clients.producer("linger.ms", 0)) {
            producer.send(new ProducerRecord<>(p.topic(), 0, now, "k", "v")).get(30, TimeUnit.SECONDS);
            newest = producer.send(new ProducerRecord<>(p.topic(), 0, now + 5000, "k", "v")).get(30, TimeUnit.SECONDS);
            producer.send(new ProducerRecord<>(p.topic(), 0, now + 1000, "k", "v")).get(30, TimeUnit.SECONDS);
        }
        var info = Clients.get(admin.listOffsets(Map.of(p, OffsetSpec.maxTimestamp())).partitionResult(p));
        Check.equal(newest.offset(), info.offset(), "the offset");
        Check.equal(now + 5000, info.timestamp(), "the timestamp");
    }

    private static void severalGroups() throws Exception {
        TopicPartition p = new TopicPartition(Clients.topic("several-groups", 2), 0);
        String one = Clients.prefix + "several-1";
        String two = Clients.prefix + "several-2";
        Clients.get(admin.alterConsumerGroupOffsets(one, Map.of(p, new OffsetAndMetadata(1))).all());
        Clients.get(admin.alterConsumerGroupOffsets(two, Map.of(p, new OffsetAndMetadata(2))).all());
        var spec = new ListConsumerGroupOffsetsSpec();
        var offsets = Clients.get(admin.listConsumerGroupOffsets(Map.of(one, spec, two, spec)).all());
        Check.equal(1L, offsets.get(one).get(p).offset(), "the offset of the first");
        Check.equal(2L, offsets.get(two).get(p).offset(), "the offset of the second");
        TopicPartition other = new TopicPartition(p.topic(), 1);
        var some = Map.of(one, new ListConsumerGroupOffsetsSpec().topicPartitions(List.of(p, other)));
        offsets = Clients.get(admin.listConsumerGroupOffsets(some).all());
        Check.that(offsets.get(one).get(p).offset() == 1 && offsets.get(one).get(other) == null, "offsets of two partitions: " + offsets);
    }

    private static void byType() throws Exception {
        String group = Clients.prefix + "by-type";
        TopicPartition p = new TopicPartition(Clients.topic("by-type", 1), 0);
        Clients.get(admin.alterConsumerGroupOffsets(group, Map.of(p, new OffsetAndMetadata(1))).all());
        Check.that(typed(GroupType.CLASSIC, group), "the group is not listed as classic");
        Check.that(!typed(GroupType.CONSUMER, group), "the group is listed as consumer");
    }

    private static boolean typed(GroupType type, String group) throws Exception {
        var options = new ListConsumerGroupsOptions().withTypes(Set.of(type));
        return Clients.get(admin.listConsumerGroups(options).all()).stream().anyMatch(l -> l.groupId().equals(group));
    }
}
