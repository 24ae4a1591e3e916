import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UserScramCredentialDeletion;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.errors.SaslAuthenticationException;
import org.apache.kafka.common.errors.SslAuthenticationException;
import org.apache.kafka.common.resource.ResourceType;

/** Clients log in by each mechanism, with and without TLS, and work; what is wrong is refused at once. */
final class Logins {
    private static final Map<String, String> LISTENERS = Map.of("SASL_PLAINTEXT", "TCP", "SASL_SSL", "TLS");

    private Logins() {}

    static void run() throws Exception {
        String alice = Secured.user("alice", Secured.PASSWORD);
        for (String name : List.of(alice, "carol")) {
            Secured.allow(name, "login-", AclOperation.ALL, ResourceType.TOPIC, ResourceType.GROUP);
        }
        Map<String, Check.Body> checks = new LinkedHashMap<>();
        for (String mechanism : List.of("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")) {
            String password = mechanism.equals("OAUTHBEARER") ? "" : Secured.PASSWORD;
            for (String listener : List.of("SASL_PLAINTEXT", "SASL_SSL")) {
                checks.put("login: " + mechanism + " over " + LISTENERS.get(listener),
                    () -> works(mechanism + listener, Secured.login(listener, mechanism, alice, password)));
            }
        }
        checks.put("login: certificate", () -> works("certificate", Secured.certified("CERTIFICATE")));
        Check.start(checks).run();

        checks.clear();
        for (String mechanism : List.of("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")) {
            checks.put("refused login: wrong password by " + mechanism, () -> {
                for (String listener : List.of("SASL_PLAINTEXT", "SASL_SSL")) {
                    refused(SaslAuthenticationException.class, Secured.login(listener, mechanism, alice, "wrong"));
                }
            });
        }
        checks.put("refused login: no such user", () -> refused(SaslAuthenticationException.class, Secured.login("SASL_SSL", "SCRAM-SHA-256", "nobody", "x")));
        checks.put("refused login: no credential for the mechanism", Logins::otherMechanism);
        checks.put("refused login: token for another audience",
            () -> refused(SaslAuthenticationException.class, Secured.login("SASL_SSL", "OAUTHBEARER", alice, "aud=\"other\"")));
        checks.put("refused login: certificate of a stranger", () -> refused(SslAuthenticationException.class, Secured.certified("STRANGER")));
        checks.put("refused login: no certificate", () -> refused(SslAuthenticationException.class, Secured.at("SSL")));
        Check.start(checks).run();
    }

    /** Creates a topic, writes to it and reads it in a group, as somebody who logs in. */
    private static void works(String name, Map<String, Object> login) throws Exception {
        String topic;
        try (Admin own = Admin.create(login)) {
            topic = Secured.topic(own, "login-" + name);
        }
        Set<String> written = new TreeSet<>();
        try (KafkaProducer<String, String> p = Secured.producer(login)) {
            for (int i = 0; i < 10; i++) {
                Secured.send(p, topic, "v" + i);
                written.add("v" + i);
            }
        }
        try (KafkaConsumer<String, String> c = Secured.consumer(login, "group.id", topic)) {
            c.subscribe(List.of(topic));
            Set<String> read = new TreeSet<>();
            Check.until("all records read", () -> {
                c.poll(Duration.ofMillis(100)).forEach(r -> read.add(r.value()));
                return read.size() >= written.size();
            });
            Check.equal(written, read, "what was read");
            c.commitSync();
        }
        long committed = Secured.get(Secured.admin.listConsumerGroupOffsets(topic).partitionsToOffsetAndMetadata()).size();
        Check.equal(2L, committed, "partitions with committed offsets");
    }

    /** Each kind of client must say what is wrong, long before it would give up. */
    private static void refused(Class<? extends Throwable> with, Map<String, Object> login) {
        try (Admin own = Admin.create(login)) {
            Check.fails(with, "an admin's request", () -> Secured.get(own.describeCluster().nodes()));
        }
        try (KafkaProducer<String, String> p = Secured.producer(login)) {
            Check.fails(with, "a record", () -> Secured.send(p, "any", "v"));
        }
        try (KafkaConsumer<String, String> c = Secured.consumer(login, "group.id", "any")) {
            c.subscribe(List.of("any"));
            Check.fails(with, "a poll", () -> c.poll(Duration.ofSeconds(30)));
        }
    }

    private static void otherMechanism() throws Exception {
        String fred = Secured.user("fred", "fred");
        Secured.get(Secured.admin.alterUserScramCredentials(List.of(new UserScramCredentialDeletion(fred, ScramMechanism.SCRAM_SHA_256))).all());
        refused(SaslAuthenticationException.class, Secured.login("SASL_SSL", "SCRAM-SHA-256", fred, "fred"));
        try (Admin own = Admin.create(Secured.login("SASL_SSL", "SCRAM-SHA-512", fred, "fred"))) {
            Secured.get(own.describeCluster().nodes());
        }
    }
}
