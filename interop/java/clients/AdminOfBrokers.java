import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UserScramCredentialDeletion;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.ResourceNotFoundException;
import org.apache.kafka.common.errors.SecurityDisabledException;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.quota.ClientQuotaFilterComponent;

/** The Admin client over brokers, and what we do not serve. */
final class AdminOfBrokers {
    private AdminOfBrokers() {}

    private static final Admin admin = Clients.admin;

    static void run() {
        Check.run("admin: describe the cluster", AdminOfBrokers::cluster);
        Check.run("admin: configs of brokers", AdminOfBrokers::configs);
        Check.run("admin: describe log dirs", AdminOfBrokers::logDirs);
        Check.run("admin: users and their SCRAM credentials", AdminOfBrokers::users);
        Check.run("admin: quotas", AdminOfBrokers::quotas);
        Check.run("admin: rules, without an authorizer", AdminOfBrokers::rules);
        Check.run("admin: what is not served", AdminOfBrokers::unserved);
    }

    private static Node node() throws Exception {
        return Clients.get(admin.describeCluster().nodes()).iterator().next();
    }

    private static void cluster() throws Exception {
        var cluster = admin.describeCluster();
        Check.that(!Clients.get(cluster.clusterId()).isEmpty(), "no cluster id");
        Check.equal(1, Clients.get(cluster.nodes()).size(), "brokers");
        Check.equal(node(), Clients.get(cluster.controller()), "the controller");
        Check.equal(Clients.bootstrap, node().host() + ":" + node().port(), "the address");
        Check.that(Clients.get(admin.describeFeatures().featureMetadata()) != null, "no features");
    }

    private static void configs() throws Exception {
        ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, node().idString());
        Check.equal("0", value(broker, "group.initial.rebalance.delay.ms"), "a setting from the command line");
        // What nothing else here depends on, and another one for each version: they run at the same time.
        String name = Map.of("4", "log.cleaner.delete.retention.ms", "3", "log.cleaner.max.compaction.lag.ms", "2", "log.retention.bytes")
            .get(Check.version().substring(0, 1));
        String before = value(broker, name);
        AdminOfTopics.alter(broker, OpType.SET, name, "90000000");
        Check.equal("90000000", value(broker, name), name);
        AdminOfTopics.alter(broker, OpType.DELETE, name, "");
        Check.equal(before, value(broker, name), name + " by default");
    }

    private static String value(ConfigResource of, String name) throws Exception {
        ConfigEntry entry = Clients.get(admin.describeConfigs(List.of(of)).all()).get(of).get(name);
        return entry == null ? null : entry.value();
    }

    private static void logDirs() throws Exception {
        String topic = Clients.topic("log-dirs", 1);
        Clients.write(topic, 1, 100);
        var dirs = Clients.get(admin.describeLogDirs(List.of(node().id())).allDescriptions()).get(node().id());
        Check.equal(1, dirs.size(), "log dirs");
        var replica = dirs.values().iterator().next().replicaInfos().get(new TopicPartition(topic, 0));
        Check.that(replica != null && replica.size() > 0, "the topic has no size: " + replica);
        TopicPartitionReplica r = new TopicPartitionReplica(topic, 0, node().id());
        var info = Clients.get(admin.describeReplicaLogDirs(List.of(r)).all()).get(r);
        Check.equal(dirs.keySet().iterator().next(), info.getCurrentReplicaLogDir(), "the log dir of a replica");
    }

    /** A client learns from ApiVersions what is not there, and says so at once. */
    private static void unserved() {
        Check.fails(UnsupportedVersionException.class, "describing delegation tokens",
            () -> Clients.get(admin.describeDelegationToken().delegationTokens()));
    }

    /** The broker of the matrix has no authorizer. */
    private static void rules() {
        Check.fails(SecurityDisabledException.class, "describing ACLs",
            () -> Clients.get(admin.describeAcls(AclBindingFilter.ANY).values()));
    }

    private static void users() throws Exception {
        String name = "user-of-" + Check.version();
        ScramCredentialInfo info = new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192);
        Clients.get(admin.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion(name, info, "secret"))).all());
        Check.equal(List.of(info), Clients.get(admin.describeUserScramCredentials(List.of(name)).description(name)).credentialInfos(), "the credentials");
        Clients.get(admin.alterUserScramCredentials(List.of(new UserScramCredentialDeletion(name, info.mechanism()))).all());
        Check.fails(ResourceNotFoundException.class, "describing a user that is gone",
            () -> Clients.get(admin.describeUserScramCredentials(List.of(name)).description(name)));
    }

    private static void quotas() throws Exception {
        ClientQuotaEntity entity = new ClientQuotaEntity(Map.of(ClientQuotaEntity.USER, "user-of-" + Check.version()));
        ClientQuotaFilter filter = ClientQuotaFilter.containsOnly(
            List.of(ClientQuotaFilterComponent.ofEntity(ClientQuotaEntity.USER, "user-of-" + Check.version())));
        Clients.get(admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity, List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 1e6))))).all());
        Check.equal(Map.of(entity, Map.of("producer_byte_rate", 1e6)), Clients.get(admin.describeClientQuotas(filter).entities()), "the quotas");
        Clients.get(admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity, List.of(new ClientQuotaAlteration.Op("producer_byte_rate", null))))).all());
        Check.equal(Map.of(), Clients.get(admin.describeClientQuotas(filter).entities()), "the quotas after they were removed");
    }
}
