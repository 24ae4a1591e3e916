import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.CreatePartitionsOptions;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.DescribeTopicsResult;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.ElectionNotNeededException;
import org.apache.kafka.common.errors.InvalidConfigurationException;
import org.apache.kafka.common.errors.InvalidPartitionsException;
import org.apache.kafka.common.errors.InvalidReplicationFactorException;
import org.apache.kafka.common.errors.InvalidTopicException;
import org.apache.kafka.common.errors.OffsetOutOfRangeException;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/** The Admin client over topics, their settings and their records. */
final class AdminOfTopics {
    private AdminOfTopics() {}

    private static final Admin admin = Clients.admin;

    static void run() {
        Check.run("admin: create topics", AdminOfTopics::create);
        Check.run("admin: list and describe topics", AdminOfTopics::describe);
        Check.run("admin: create partitions", AdminOfTopics::grow);
        Check.run("admin: delete topics", AdminOfTopics::delete);
        Check.run("admin: describe configs", AdminOfTopics::configs);
        Check.run("admin: alter configs incrementally", AdminOfTopics::incremental);
        Check.run("admin: delete records, list offsets", AdminOfTopics::records);
        Check.run("admin: elect leaders, list reassignments", AdminOfTopics::leaders);
    }

    private static void create() throws Exception {
        String name = Clients.prefix + "create";
        NewTopic topic = new NewTopic(name, 3, (short) 1).configs(Map.of("cleanup.policy", "compact", "retention.ms", "3600000"));
        Clients.get(admin.createTopics(List.of(topic), new CreateTopicsOptions().validateOnly(true)).all());
        Check.that(!Clients.get(admin.listTopics().names()).contains(name), "a topic that was only validated exists");
        var created = admin.createTopics(List.of(topic));
        Clients.get(created.all());
        Check.equal(3, Clients.get(created.numPartitions(name)), "partitions");
        Check.equal(1, Clients.get(created.replicationFactor(name)), "the replication factor");
        Check.equal("compact", Clients.get(created.config(name)).get("cleanup.policy").value(), "cleanup.policy");
        Check.fails(TopicExistsException.class, "the topic again", () -> Clients.get(admin.createTopics(List.of(topic)).all()));
        String other = Clients.prefix + "create-not";
        refused(InvalidReplicationFactorException.class, new NewTopic(other, 1, (short) 3));
        refused(InvalidPartitionsException.class, new NewTopic(other, 0, (short) 1));
        refused(InvalidTopicException.class, new NewTopic("a/b", 1, (short) 1));
        refused(InvalidConfigurationException.class, new NewTopic(other, 1, (short) 1).configs(Map.of("retention.ms", "soon")));
        int node = Clients.get(admin.describeCluster().nodes()).iterator().next().id();
        NewTopic assigned = new NewTopic(Clients.prefix + "create-assigned", Map.of(0, List.of(node), 1, List.of(node)));
        Clients.get(admin.createTopics(List.of(assigned)).all());
        Check.equal(2, one(assigned.name()).partitions().size(), "partitions of a topic with given replicas");
    }

    private static void refused(Class<? extends Throwable> with, NewTopic topic) {
        Check.fails(with, "creating " + topic, () -> Clients.get(admin.createTopics(List.of(topic)).all()));
    }

    private static void describe() throws Exception {
        String name = Clients.topic("describe", 2);
        Check.that(Clients.get(admin.listTopics().names()).contains(name), "the topic is not listed");
        Set<String> internal = Clients.get(admin.listTopics(new ListTopicsOptions().listInternal(true)).names());
        Check.that(internal.contains("__consumer_offsets"), "__consumer_offsets is not listed");
        Check.that(!Clients.get(admin.listTopics().names()).contains("__consumer_offsets"), "internal topics are listed unasked");
        TopicDescription d = one(name);
        Check.equal(2, d.partitions().size(), "partitions");
        Check.equal(1, d.partitions().get(1).replicas().size(), "replicas");
        Check.that(d.partitions().get(0).leader() != null && d.partitions().get(0).isr().size() == 1, "no leader: " + d);
        Check.fails(UnknownTopicOrPartitionException.class, "describing a topic that does not exist", () -> one(name + "-not"));
    }

    /** Describes one topic. What all() was called once is allTopicNames() now. */
    @SuppressWarnings("unchecked")
    private static TopicDescription one(String name) throws Exception {
        DescribeTopicsResult result = admin.describeTopics(List.of(name));
        KafkaFuture<Map<String, TopicDescription>> all;
        try {
            all = (KafkaFuture<Map<String, TopicDescription>>) result.getClass().getMethod("allTopicNames").invoke(result);
        } catch (NoSuchMethodException e) {
            all = (KafkaFuture<Map<String, TopicDescription>>) result.getClass().getMethod("all").invoke(result);
        }
        return Clients.get(all).get(name);
    }

    private static void grow() throws Exception {
        String name = Clients.topic("grow", 2);
        Clients.get(admin.createPartitions(Map.of(name, NewPartitions.increaseTo(5)), new CreatePartitionsOptions().validateOnly(true)).all());
        Check.equal(2, one(name).partitions().size(), "partitions after validation");
        Clients.get(admin.createPartitions(Map.of(name, NewPartitions.increaseTo(5))).all());
        Check.equal(5, one(name).partitions().size(), "partitions");
        Check.fails(InvalidPartitionsException.class, "fewer partitions",
            () -> Clients.get(admin.createPartitions(Map.of(name, NewPartitions.increaseTo(3))).all()));
        Check.equal(5, Clients.write(name, 5, 5).size(), "records written to the partitions");
    }

    private static void delete() throws Exception {
        String name = Clients.topic("delete", 1);
        Clients.write(name, 1, 3);
        Clients.get(admin.deleteTopics(List.of(name)).all());
        Check.until("the topic is gone", () -> !Clients.get(admin.listTopics().names()).contains(name));
        Check.fails(UnknownTopicOrPartitionException.class, "deleting it again", () -> Clients.get(admin.deleteTopics(List.of(name)).all()));
        Clients.topic("delete", 1);
        Check.equal(0, Clients.read(name, 1).size(), "records of the topic created anew");
    }

    private static ConfigResource resource(String topic) {
        return new ConfigResource(ConfigResource.Type.TOPIC, topic);
    }

    private static ConfigEntry setting(ConfigResource of, String name) throws Exception {
        return Clients.get(admin.describeConfigs(List.of(of)).all()).get(of).get(name);
    }

    private static void configs() throws Exception {
        ConfigResource topic = resource(Clients.topic("configs", 1));
        ConfigEntry retention = setting(topic, "retention.ms");
        Check.equal("604800000", retention.value(), "retention.ms");
        Check.that(retention.isDefault(), "retention.ms is no default");
        Check.fails(UnknownTopicOrPartitionException.class, "settings of a topic that does not exist",
            () -> setting(resource(Clients.prefix + "configs-not"), "retention.ms"));
        try {
            var alter = Admin.class.getMethod("alterConfigs", Map.class);
            var given = Map.of(topic, new Config(List.of(new ConfigEntry("retention.ms", "7200000"))));
            Object result = alter.invoke(admin, given);
            Clients.get((KafkaFuture<?>) result.getClass().getMethod("all").invoke(result));
            Check.equal("7200000", setting(topic, "retention.ms").value(), "retention.ms as altered");
        } catch (NoSuchMethodException e) {
            // It is gone in 4.0.
        }
    }

    private static void incremental() throws Exception {
        ConfigResource topic = resource(Clients.topic("incremental", 1));
        alter(topic, OpType.SET, "retention.ms", "1000000");
        Check.equal("1000000", setting(topic, "retention.ms").value(), "retention.ms");
        Check.equal(ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG, setting(topic, "retention.ms").source(), "its source");
        alter(topic, OpType.APPEND, "cleanup.policy", "compact");
        Check.equal("delete,compact", setting(topic, "cleanup.policy").value(), "cleanup.policy after append");
        alter(topic, OpType.SUBTRACT, "cleanup.policy", "delete");
        Check.equal("compact", setting(topic, "cleanup.policy").value(), "cleanup.policy after subtract");
        alter(topic, OpType.DELETE, "retention.ms", "");
        Check.that(setting(topic, "retention.ms").isDefault(), "retention.ms is no default again");
        Check.fails(InvalidConfigurationException.class, "a bad value", () -> alter(topic, OpType.SET, "retention.ms", "soon"));
        Check.fails(InvalidConfigurationException.class, "a bad name", () -> alter(topic, OpType.SET, "no.such.setting", "1"));
    }

    static void alter(ConfigResource resource, OpType type, String name, String value) throws Exception {
        AlterConfigOp op = new AlterConfigOp(new ConfigEntry(name, value), type);
        Clients.get(admin.incrementalAlterConfigs(Map.of(resource, List.of(op))).all());
    }

    private static void records() throws Exception {
        String name = Clients.topic("records", 1);
        TopicPartition p = new TopicPartition(name, 0);
        long before = System.currentTimeMillis();
        List<RecordMetadata> written = Clients.write(name, 1, 20);
        Check.that(offset(p, OffsetSpec.earliest()) <= written.get(0).offset(), "the earliest offset is after the first record");
        Check.equal(written.get(19).offset() + 1, offset(p, OffsetSpec.latest()), "the latest offset");
        Check.equal(written.get(0).offset(), offset(p, OffsetSpec.forTimestamp(before)), "the offset of a time before all records");
        Check.equal(-1L, offset(p, OffsetSpec.forTimestamp(before + 3_600_000)), "the offset of a time to come");
        var deleted = admin.deleteRecords(Map.of(p, RecordsToDelete.beforeOffset(written.get(7).offset()))).lowWatermarks();
        Check.equal(written.get(7).offset(), Clients.get(deleted.get(p)).lowWatermark(), "the low watermark");
        Check.equal(written.get(7).offset(), offset(p, OffsetSpec.earliest()), "the earliest offset after deletion");
        List<String> left = new ArrayList<>();
        Clients.read(name, 1).forEach(r -> left.add(r.value()));
        Check.equal(13, left.size(), "records left");
        Check.equal("v7", left.get(0), "the first record left");
        Check.fails(OffsetOutOfRangeException.class, "deleting what is not there yet", () -> Clients.get(admin.deleteRecords(
            Map.of(p, RecordsToDelete.beforeOffset(written.get(19).offset() + 100))).all()));
        Clients.get(admin.deleteRecords(Map.of(p, RecordsToDelete.beforeOffset(-1))).all());
        Check.equal(0, Clients.read(name, 1).size(), "records left after all were deleted");
    }

    private static long offset(TopicPartition p, OffsetSpec spec) throws Exception {
        ListOffsetsResultInfo info = Clients.get(admin.listOffsets(Map.of(p, spec)).partitionResult(p));
        return info.offset();
    }

    private static void leaders() throws Exception {
        TopicPartition p = new TopicPartition(Clients.topic("leaders", 1), 0);
        try {
            Clients.get(admin.electLeaders(ElectionType.PREFERRED, Set.of(p)).all());
        } catch (ExecutionException e) {
            Check.that(e.getCause() instanceof ElectionNotNeededException, "the election failed: " + e);
        }
        Check.equal(Map.of(), Clients.get(admin.listPartitionReassignments().reassignments()), "reassignments");
    }
}
