import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.errors.SaslAuthenticationException;
import org.apache.kafka.common.resource.ResourceType;

/** Passwords change and sessions end while clients write and read. */
final class Changes {
    private Changes() {}

    static Runnable start() throws Exception {
        Map<String, Check.Body> checks = new LinkedHashMap<>();
        for (String name : List.of("erin", "dave", "gina", "hank", "ivan")) {
            Secured.allow(Secured.prefix + name, name, AclOperation.ALL, ResourceType.TOPIC, ResourceType.GROUP);
        }
        checks.put("mid-stream: a password change", Changes::password);
        checks.put("mid-stream: a password change, then the session ends", Changes::passwordAndSession);
        String gina = Secured.user("gina", Secured.PASSWORD);
        checks.put("mid-stream: sessions of SCRAM-SHA-512 end, no record is lost",
            () -> stream("gina", Secured.login("SHORT", "SCRAM-SHA-512", gina, Secured.PASSWORD)));
        checks.put("mid-stream: tokens end, no record is lost",
            () -> stream("hank", Secured.login("SASL_SSL", "OAUTHBEARER", Secured.prefix + "hank", "for=\"6s\"")));
        checks.put("mid-stream: a token ends and there is no other", Changes::lastToken);
        return Check.start(checks);
    }

    /** Who has logged in stays; who comes anew needs the new password. */
    private static void password() throws Exception {
        String user = Secured.user("erin", "before");
        String topic = Secured.topic(Secured.admin, "erin");
        for (String mechanism : List.of("PLAIN", "SCRAM-SHA-256")) {
            Secured.user("erin", "before");
            Map<String, Object> before = Secured.login("SASL_SSL", mechanism, user, "before");
            try (KafkaProducer<String, String> p = Secured.producer(before)) {
                Secured.send(p, topic, "v1");
                Secured.send(p, topic, "v2");
                long connections = Secured.count(p.metrics(), "connection-creation-total");
                Secured.user("erin", "after");
                for (int i = 0; i < 20; i++) {
                    Secured.send(p, topic, "v3");
                }
                Check.equal(connections, Secured.count(p.metrics(), "connection-creation-total"), "connections of who had logged in");
            }
            try (Admin own = Admin.create(before)) {
                Check.fails(SaslAuthenticationException.class, "a login with the old password", () -> Secured.get(own.describeCluster().nodes()));
            }
            try (KafkaProducer<String, String> p = Secured.producer(Secured.login("SASL_SSL", mechanism, user, "after"))) {
                Secured.send(p, topic, "v4");
            }
        }
    }

    /** Who does not know the new password is refused when the session ends. */
    private static void passwordAndSession() throws Exception {
        String user = Secured.user("dave", "before");
        String topic = Secured.topic(Secured.admin, "dave");
        Map<String, Object> before = Secured.login("SHORT", "SCRAM-SHA-256", user, "before");
        KafkaConsumer<String, String> c = Secured.consumer(before);
        try (KafkaProducer<String, String> p = Secured.producer(before)) {
            c.assign(List.of(new TopicPartition(topic, 0), new TopicPartition(topic, 1)));
            Secured.send(p, topic, "v1");
            Check.until("the record is read", () -> !c.poll(Duration.ofMillis(100)).isEmpty());
            Secured.user("dave", "after");
            ends(c);
            p.close(Duration.ZERO);
        } finally {
            close(c);
        }
    }

    /** Closes a consumer whose login may be refused, which some take for a failure to close. */
    private static void close(KafkaConsumer<String, String> c) {
        try {
            c.close(Duration.ZERO);
        } catch (KafkaException e) {
            Check.that(e instanceof SaslAuthenticationException || e.getCause() instanceof SaslAuthenticationException, "closing: " + e);
        }
    }

    private static void lastToken() throws Exception {
        String topic = Secured.topic(Secured.admin, "ivan");
        try (KafkaProducer<String, String> p = Secured.producer(Secured.login("SASL_SSL", "OAUTHBEARER", Secured.prefix + "ivan", ""))) {
            Secured.send(p, topic, "v1");
        }
        // On a slow machine a token may end before anything is read with it.
        for (int seconds = 2; !readsUntil(topic, seconds); seconds *= 2) {
            Check.that(seconds < 60, "no token lasted until something was read");
        }
    }

    /** Reads with one token until it ends. Says whether there was time to read something. */
    private static boolean readsUntil(String topic, int seconds) throws Exception {
        String token = "for=\"" + seconds + "s\" once=\"true\"";
        KafkaConsumer<String, String> c = Secured.consumer(Secured.login("SASL_SSL", "OAUTHBEARER", Secured.prefix + "ivan", token));
        try {
            c.assign(List.of(new TopicPartition(topic, 0), new TopicPartition(topic, 1)));
            Check.until("the record is read", () -> !c.poll(Duration.ofMillis(100)).isEmpty());
            ends(c);
            return true;
        } catch (SaslAuthenticationException e) {
            return false;
        } finally {
            close(c);
        }
    }

    /** A consumer that is refused when it logs in again. */
    private static void ends(KafkaConsumer<String, String> c) throws Exception {
        Check.until("the login fails", () -> {
            try {
                c.poll(Duration.ofMillis(100));
                return false;
            } catch (SaslAuthenticationException e) {
                return true;
            }
        });
    }

    /**
     * Writes and reads while both clients log in again and again on the connections that they have. On a slow machine
     * one may be late, be cut off and read something twice.
     */
    private static void stream(String name, Map<String, Object> login) throws Exception {
        String topic = Secured.topic(Secured.admin, name);
        try (KafkaProducer<String, String> p = Secured.producer(login); KafkaConsumer<String, String> c = Secured.consumer(login, "group.id", topic)) {
            c.subscribe(List.of(topic));
            Set<String> read = new TreeSet<>();
            Set<String> written = new TreeSet<>();
            // Once is enough for older clients: it takes seconds.
            int times = Check.version().startsWith("4") ? 2 : 1;
            Check.until("both have logged in again", () -> {
                String value = "v" + written.size();
                Secured.send(p, topic, value);
                written.add(value);
                c.poll(Duration.ofMillis(10)).forEach(r -> read.add(r.value()));
                return again(p.metrics()) >= times && again(c.metrics()) >= 2 * times;
            });
            Check.until("all records read", () -> {
                c.poll(Duration.ofMillis(100)).forEach(r -> read.add(r.value()));
                return read.containsAll(written);
            });
            Check.equal(written, read, "records read");
            for (var metrics : List.of(p.metrics(), c.metrics())) {
                Check.equal(0L, Secured.count(metrics, "failed-reauthentication-total"), "logins that failed");
            }
        }
    }

    private static long again(Map<MetricName, ? extends Metric> metrics) {
        return Secured.count(metrics, "successful-reauthentication-total");
    }
}
