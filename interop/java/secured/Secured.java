import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * The Java clients of one version, against a broker where clients log in and rules say what
 * each may do. Environment variables say where it is (interop/matrix/secured.go).
 */
final class Secured {
    static final String PASSWORD = "pass, word=\\\"1\\\"";
    /** What the names of all users, topics and groups begin with. */
    static String prefix;
    /** Who may do everything. */
    static Admin admin;

    private Secured() {}

    public static void main(String[] args) throws Exception {
        Check.begin();
        prefix = "secured-" + Check.version().replace('.', '-') + "-";
        admin = Admin.create(login("SASL_SSL", "SCRAM-SHA-512", "admin", "admin-secret"));
        // These wait for sessions to end; the others run meanwhile.
        Runnable changes = Changes.start();
        Logins.run();
        Denials.run();
        changes.run();
        Check.end();
    }

    static String env(String name) {
        return System.getenv("MUSTER_MATRIX_" + name);
    }

    static <T> T get(KafkaFuture<T> future) throws Exception {
        return future.get(30, TimeUnit.SECONDS);
    }

    /** The settings of a client of a listener, but for its login. */
    static Map<String, Object> at(String listener) {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", env(listener));
        config.put("security.protocol", listener.equals("SHORT") ? "SASL_PLAINTEXT" : listener);
        if (listener.endsWith("SSL")) {
            config.put("ssl.truststore.type", "PEM");
            config.put("ssl.truststore.location", env("CA"));
        }
        return config;
    }

    /** The settings of a client that logs in. For OAUTHBEARER, the password stands for options that say which tokens it gets. */
    static Map<String, Object> login(String listener, String mechanism, String user, String password) {
        Map<String, Object> config = at(listener);
        config.put("sasl.mechanism", mechanism);
        String options = "username=\"" + user + "\" password=\"" + password + "\"";
        String module = mechanism.equals("PLAIN") ? "plain.PlainLoginModule" : "scram.ScramLoginModule";
        if (mechanism.equals("OAUTHBEARER")) {
            module = "oauthbearer.OAuthBearerLoginModule";
            options = "sub=\"" + user + "\" " + password;
            config.put("sasl.login.callback.handler.class", Bearer.class.getName());
            config.put("sasl.login.refresh.min.period.seconds", "0");
            config.put("sasl.login.refresh.buffer.seconds", "0");
            config.put("sasl.login.refresh.window.factor", "0.5");
        }
        config.put("sasl.jaas.config", "org.apache.kafka.common.security." + module + " required " + options + ";");
        return config;
    }

    /** The settings of a client that shows a certificate. */
    static Map<String, Object> certified(String file) throws IOException {
        Map<String, Object> config = at("SSL");
        config.put("ssl.keystore.type", "PEM");
        if (Check.version().startsWith("2")) {
            // These take a key without a password only if it is not in a file.
            String text = Files.readString(Path.of(env(file)));
            int chain = text.indexOf("-----BEGIN CERTIFICATE");
            config.put("ssl.keystore.key", text.substring(0, chain));
            config.put("ssl.keystore.certificate.chain", text.substring(chain));
        } else {
            config.put("ssl.keystore.location", env(file));
        }
        return config;
    }

    /** Makes a user who can log in by PLAIN and SCRAM, or sets his password, and returns his name. */
    static String user(String name, String password) throws Exception {
        // As in Kafka, a request may change a user only once.
        for (ScramMechanism m : List.of(ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)) {
            get(admin.alterUserScramCredentials(List.of(
                new UserScramCredentialUpsertion(prefix + name, new ScramCredentialInfo(m, 4096), password.replace("\\", "")))).all());
        }
        return prefix + name;
    }

    static AclBinding rule(String user, AclOperation operation, ResourceType type, String name, PatternType pattern) {
        return new AclBinding(new ResourcePattern(type, name, pattern), new AccessControlEntry("User:" + user, "*", operation, AclPermissionType.ALLOW));
    }

    /** Allows a user something on all topics, groups and transactional ids whose names begin so. */
    static void allow(String user, String names, AclOperation operation, ResourceType... types) throws Exception {
        List<AclBinding> rules = new ArrayList<>();
        for (ResourceType type : types) {
            rules.add(rule(user, operation, type, prefix + names, PatternType.PREFIXED));
        }
        get(admin.createAcls(rules).all());
    }

    /** Creates a topic and returns its name. */
    static String topic(Admin by, String name) throws Exception {
        get(by.createTopics(List.of(new NewTopic(prefix + name, 2, (short) 1))).all());
        return prefix + name;
    }

    static Map<String, Object> with(Map<String, Object> config, Object... settings) {
        Map<String, Object> all = new HashMap<>(config);
        for (int i = 0; i < settings.length; i += 2) {
            all.put((String) settings[i], settings[i + 1]);
        }
        return all;
    }

    static KafkaProducer<String, String> producer(Map<String, Object> config, Object... settings) {
        return new KafkaProducer<>(with(config, settings), new StringSerializer(), new StringSerializer());
    }

    static KafkaConsumer<String, String> consumer(Map<String, Object> config, Object... settings) {
        return new KafkaConsumer<>(with(with(config, "auto.offset.reset", "earliest", "enable.auto.commit", "false"), settings),
            new StringDeserializer(), new StringDeserializer());
    }

    static RecordMetadata send(KafkaProducer<String, String> p, String topic, String value) throws Exception {
        return p.send(new ProducerRecord<>(topic, value)).get(30, TimeUnit.SECONDS);
    }

    /** What a client counted. */
    static long count(Map<MetricName, ? extends Metric> metrics, String name) {
        double all = 0;
        for (var m : metrics.entrySet()) {
            if (m.getKey().name().equals(name) && m.getKey().group().matches("(producer|consumer)-metrics")) {
                all += (Double) m.getValue().metricValue();
            }
        }
        return (long) all;
    }
}
