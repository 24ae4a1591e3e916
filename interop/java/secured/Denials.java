import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UserScramCredentialDeletion;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.ClusterAuthorizationException;
import org.apache.kafka.common.errors.GroupAuthorizationException;
import org.apache.kafka.common.errors.TopicAuthorizationException;
import org.apache.kafka.common.errors.TransactionalIdAuthorizationException;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourceType;

/**
 * What rules do not allow fails with the exception of what is denied. The user bob may do all
 * with what is called bobs, and see the groups and transactional ids called seen: a request
 * for these comes further than one for what he may not even look up.
 */
final class Denials {
    private static Map<String, Object> bob;
    private static Admin bobs;
    private static String open;
    private static String closed;
    private static String seenGroup;
    private static String closedGroup;
    private static final OffsetAndMetadata START = new OffsetAndMetadata(0);

    private Denials() {}

    static void run() throws Exception {
        String name = Secured.user("bob", Secured.PASSWORD);
        Secured.allow(name, "bobs", AclOperation.ALL, ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID);
        Secured.allow(name, "seen", AclOperation.DESCRIBE, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID);
        open = Secured.topic(Secured.admin, "bobs");
        closed = Secured.topic(Secured.admin, "closed");
        seenGroup = Secured.prefix + "seen";
        closedGroup = Secured.prefix + "closed";
        for (String group : List.of(seenGroup, closedGroup)) {
            Secured.get(Secured.admin.alterConsumerGroupOffsets(group, Map.of(new TopicPartition(open, 0), START)).all());
        }
        bob = Secured.login("SASL_SSL", "SCRAM-SHA-256", name, Secured.PASSWORD);
        bobs = Admin.create(bob);
        Check.run("denied: topics (29)", Denials::topics);
        Check.run("denied: topics, to the Admin client (29)", Denials::topicsToAdmin);
        Check.run("denied: groups (30)", () -> groups("classic"));
        if (Check.version().startsWith("4")) {
            Check.run("denied: consumer groups (30)", () -> groups("consumer"));
        }
        Check.run("denied: groups, to the Admin client (30)", Denials::groupsToAdmin);
        Check.run("denied: topics of groups (29)", Denials::topicsOfGroups);
        Check.run("denied: the cluster (31)", Denials::cluster);
        Check.run("denied: an idempotent producer (31)", Denials::idempotence);
        Check.run("denied: transactional ids (53)", Denials::transactionalIds);
        Check.run("denied: topics and groups in a transaction (29, 30)", Denials::transactions);
        Check.run("denied: not listed", Denials::lists);
        bobs.close();
    }

    private static void topics() throws Exception {
        // What does not exist looks the same.
        for (String topic : List.of(closed, Secured.prefix + "nowhere")) {
            try (KafkaProducer<String, String> p = Secured.producer(bob)) {
                Check.fails(TopicAuthorizationException.class, "a record", () -> Secured.send(p, topic, "v"));
                Secured.send(p, open, "v");
            }
            try (KafkaConsumer<String, String> c = Secured.consumer(bob, "group.id", Secured.prefix + "bobs")) {
                c.subscribe(List.of(topic));
                Check.fails(TopicAuthorizationException.class, "a poll of a group", () -> c.poll(Duration.ofSeconds(30)));
                c.unsubscribe();
                c.assign(List.of(new TopicPartition(topic, 0)));
                Check.fails(TopicAuthorizationException.class, "describing", () -> c.partitionsFor(topic));
                Check.fails(TopicAuthorizationException.class, "a poll", () -> c.poll(Duration.ofSeconds(30)));
            }
        }
    }

    private static void topicsToAdmin() {
        TopicPartition partition = new TopicPartition(closed, 0);
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, closed);
        Collection<AlterConfigOp> ops = List.of(new AlterConfigOp(new ConfigEntry("retention.ms", "1000"), AlterConfigOp.OpType.SET));
        Check.fails(TopicAuthorizationException.class, "creating", () -> Secured.topic(bobs, "closed-too"));
        Check.fails(TopicAuthorizationException.class, "creating what exists", () -> Secured.get(bobs.createTopics(List.of(new NewTopic(closed, 1, (short) 1))).all()));
        Check.fails(TopicAuthorizationException.class, "deleting", () -> Secured.get(bobs.deleteTopics(List.of(closed)).all()));
        Check.fails(TopicAuthorizationException.class, "partitions", () -> Secured.get(bobs.createPartitions(Map.of(closed, NewPartitions.increaseTo(3))).all()));
        Check.fails(TopicAuthorizationException.class, "configs", () -> Secured.get(bobs.describeConfigs(List.of(resource)).all()));
        Check.fails(TopicAuthorizationException.class, "altering configs", () -> Secured.get(bobs.incrementalAlterConfigs(Map.of(resource, ops)).all()));
        Check.fails(TopicAuthorizationException.class, "deleting records", () -> Secured.get(bobs.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(0))).all()));
        Check.fails(TopicAuthorizationException.class, "offsets", () -> Secured.get(bobs.listOffsets(Map.of(partition, OffsetSpec.latest())).all()));
    }

    private static void groups(String protocol) {
        for (String group : List.of(seenGroup, closedGroup)) {
            try (KafkaConsumer<String, String> c = Secured.consumer(bob, "group.id", group, "group.protocol", protocol)) {
                c.subscribe(List.of(open));
                Check.fails(GroupAuthorizationException.class, "joining " + group, () -> c.poll(Duration.ofSeconds(30)));
            }
            try (KafkaConsumer<String, String> c = Secured.consumer(bob, "group.id", group, "group.protocol", protocol)) {
                TopicPartition partition = new TopicPartition(open, 0);
                c.assign(List.of(partition));
                Check.fails(GroupAuthorizationException.class, "committing to " + group, () -> c.commitSync(Map.of(partition, START)));
                if (group.equals(closedGroup)) {
                    Check.fails(GroupAuthorizationException.class, "what was committed", () -> c.committed(Set.of(partition)));
                }
            }
        }
    }

    private static void groupsToAdmin() throws Exception {
        Map<TopicPartition, OffsetAndMetadata> offsets = Map.of(new TopicPartition(open, 0), START);
        RemoveMembersFromConsumerGroupOptions member = new RemoveMembersFromConsumerGroupOptions(List.of(new MemberToRemove("m")));
        for (String group : List.of(seenGroup, closedGroup)) {
            Check.fails(GroupAuthorizationException.class, "offsets", () -> Secured.get(bobs.alterConsumerGroupOffsets(group, offsets).all()));
            Check.fails(GroupAuthorizationException.class, "deleting offsets", () -> Secured.get(bobs.deleteConsumerGroupOffsets(group, offsets.keySet()).all()));
            Check.fails(GroupAuthorizationException.class, "deleting", () -> Secured.get(bobs.deleteConsumerGroups(List.of(group)).all()));
            Check.fails(GroupAuthorizationException.class, "removing a member", () -> Secured.get(bobs.removeMembersFromConsumerGroup(group, member).all()));
        }
        Check.fails(GroupAuthorizationException.class, "describing", () -> Secured.get(bobs.describeConsumerGroups(List.of(closedGroup)).all()));
        Check.fails(GroupAuthorizationException.class, "listing offsets", () -> Secured.get(bobs.listConsumerGroupOffsets(closedGroup).partitionsToOffsetAndMetadata()));
        Secured.get(bobs.describeConsumerGroups(List.of(seenGroup)).all());
        Secured.get(bobs.listConsumerGroupOffsets(seenGroup).partitionsToOffsetAndMetadata());
    }

    private static void topicsOfGroups() throws Exception {
        String group = Secured.prefix + "bobs-offsets";
        Map<TopicPartition, OffsetAndMetadata> offsets = Map.of(new TopicPartition(closed, 0), START);
        Secured.get(Secured.admin.alterConsumerGroupOffsets(group, offsets).all());
        Check.fails(TopicAuthorizationException.class, "offsets", () -> Secured.get(bobs.alterConsumerGroupOffsets(group, offsets).all()));
        Check.fails(TopicAuthorizationException.class, "deleting offsets", () -> Secured.get(bobs.deleteConsumerGroupOffsets(group, offsets.keySet()).all()));
        try (KafkaConsumer<String, String> c = Secured.consumer(bob, "group.id", group)) {
            c.assign(offsets.keySet());
            Check.fails(TopicAuthorizationException.class, "a commit", () -> c.commitSync(offsets));
        }
        Check.equal(Map.of(), Secured.get(bobs.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata()), "what bob sees of the offsets");
    }

    private static void cluster() {
        ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, "1");
        Collection<AlterConfigOp> ops = List.of(new AlterConfigOp(new ConfigEntry("log.index.interval.bytes", "5000"), AlterConfigOp.OpType.SET));
        Check.fails(ClusterAuthorizationException.class, "rules", () -> Secured.get(bobs.describeAcls(AclBindingFilter.ANY).values()));
        Check.fails(ClusterAuthorizationException.class, "a rule", () -> Secured.get(
            bobs.createAcls(List.of(Secured.rule("bob", AclOperation.ALL, ResourceType.TOPIC, closed, PatternType.LITERAL))).all()));
        Check.fails(ClusterAuthorizationException.class, "deleting rules", () -> Secured.get(bobs.deleteAcls(List.of(AclBindingFilter.ANY)).all()));
        Check.fails(ClusterAuthorizationException.class, "users", () -> Secured.get(bobs.describeUserScramCredentials().users()));
        Check.fails(ClusterAuthorizationException.class, "deleting a user", () -> Secured.get(
            bobs.alterUserScramCredentials(List.of(new UserScramCredentialDeletion("admin", ScramMechanism.SCRAM_SHA_256))).all()));
        Check.fails(ClusterAuthorizationException.class, "quotas", () -> Secured.get(bobs.describeClientQuotas(ClientQuotaFilter.all()).entities()));
        Check.fails(ClusterAuthorizationException.class, "configs", () -> Secured.get(bobs.describeConfigs(List.of(broker)).all()));
        Check.fails(ClusterAuthorizationException.class, "altering configs", () -> Secured.get(bobs.incrementalAlterConfigs(Map.of(broker, ops)).all()));
        Check.fails(ClusterAuthorizationException.class, "electing", () -> Secured.get(bobs.electLeaders(ElectionType.PREFERRED, Set.of(new TopicPartition(open, 0))).all()));
        Check.fails(ClusterAuthorizationException.class, "reassignments", () -> Secured.get(bobs.listPartitionReassignments().reassignments()));
    }

    /** Who may write to nothing at all gets no producer id. */
    private static void idempotence() throws Exception {
        String dora = Secured.user("dora", Secured.PASSWORD);
        Secured.allow(dora, "bobs", AclOperation.DESCRIBE, ResourceType.TOPIC);
        Map<String, Object> login = Secured.login("SASL_SSL", "PLAIN", dora, Secured.PASSWORD);
        try (KafkaProducer<String, String> p = Secured.producer(login, "enable.idempotence", "true", "acks", "all")) {
            Check.fails(ClusterAuthorizationException.class, "a record", () -> {
                try {
                    Secured.send(p, open, "v");
                } catch (KafkaException e) {
                    // It was told before there was a record.
                    throw e.getCause() instanceof ClusterAuthorizationException ? (ClusterAuthorizationException) e.getCause() : e;
                }
            });
        }
        try (KafkaProducer<String, String> p = Secured.producer(login, "enable.idempotence", "false")) {
            Check.fails(TopicAuthorizationException.class, "a record without idempotence", () -> Secured.send(p, open, "v"));
        }
    }

    private static void transactionalIds() {
        for (String id : List.of("seen", "closed")) {
            try (KafkaProducer<String, String> p = Secured.producer(bob, "transactional.id", Secured.prefix + id)) {
                Check.fails(TransactionalIdAuthorizationException.class, "beginning as " + id, p::initTransactions);
            }
        }
    }

    private static void transactions() throws Exception {
        try (KafkaProducer<String, String> p = Secured.producer(bob, "transactional.id", Secured.prefix + "bobs")) {
            p.initTransactions();
            p.beginTransaction();
            Check.fails(TopicAuthorizationException.class, "a record", () -> Secured.send(p, closed, "v"));
            p.abortTransaction();
        }
        for (String group : List.of(seenGroup, closedGroup)) {
            try (KafkaProducer<String, String> p = Secured.producer(bob, "transactional.id", Secured.prefix + "bobs")) {
                p.initTransactions();
                p.beginTransaction();
                Check.fails(GroupAuthorizationException.class, "offsets of " + group, () -> p.sendOffsetsToTransaction(
                    Map.of(new TopicPartition(open, 0), START), new ConsumerGroupMetadata(group, -1, "", Optional.empty())));
                p.abortTransaction();
            }
        }
    }

    private static void lists() throws Exception {
        Set<String> topics = Secured.get(bobs.listTopics().names());
        Check.that(topics.contains(open) && !topics.contains(closed), "topics that bob sees: " + topics);
        Set<String> groups = Secured.get(bobs.listConsumerGroups().all()).stream().map(g -> g.groupId()).collect(Collectors.toSet());
        Check.that(groups.contains(seenGroup) && !groups.contains(closedGroup), "groups that bob sees: " + groups);
    }
}
