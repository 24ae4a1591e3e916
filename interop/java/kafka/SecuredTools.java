import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.concurrent.Callable;

/**
 * Kafka's own command line tools against a broker where clients log in. Environment variables
 * say where it is (interop/matrix/secured.go). All that is made has names of their own, since
 * others use that broker at the same time.
 */
final class SecuredTools {
    private static final Tool acls = new Tool("org.apache.kafka.tools.AclCommand");
    private static final Tool configs = new Tool("kafka.admin.ConfigCommand");
    private static final Tool topics = new Tool("org.apache.kafka.tools.TopicCommand");
    private static final Tool groups = new Tool("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand");
    private static final Tool consoleProducer = new Tool("org.apache.kafka.tools.ConsoleProducer");
    private static final Tool consoleConsumer = new Tool("org.apache.kafka.tools.consumer.ConsoleConsumer");

    private static final String TOPIC = "tools.orders";
    private static final String GROUP = "tools-billing";
    private static final String RESOURCE = "name=" + TOPIC.replace(".", "\\.") + ", patternType=LITERAL";
    private static String admin;
    private static String alice;

    private SecuredTools() {}

    public static void main(String[] args) throws Exception {
        Check.begin();
        // Kafka's clients ask for tokens only where they are told that they may.
        System.setProperty("org.apache.kafka.sasl.oauthbearer.allowed.urls", env("TOKENS"));
        Tool.bootstrap = env("SASL_SSL");
        Tool.capture();
        admin = scram("admin", "admin-secret");
        alice = scram("tools-alice", "alices");
        users();
        rules();
        works();
        quotas();
        Check.end();
    }

    private static String env(String name) {
        return System.getenv("MUSTER_MATRIX_" + name);
    }

    /** Writes a file for --command-config and returns its name. */
    private static String file(String protocol, String... lines) throws IOException {
        Path path = Files.createTempFile("client", ".properties");
        String tls = protocol.endsWith("SSL") ? "ssl.truststore.type=PEM\nssl.truststore.location=" + env("CA") + "\n" : "";
        Files.writeString(path, "security.protocol=" + protocol + "\n" + tls + String.join("\n", lines) + "\n");
        path.toFile().deleteOnExit();
        return path.toString();
    }

    private static String scram(String user, String password) throws IOException {
        return file("SASL_SSL", "sasl.mechanism=SCRAM-SHA-512",
            "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username=\"" + user + "\" password=\"" + password + "\";");
    }

    /** Runs a tool as somebody. */
    private static String run(Tool tool, String as, String... args) throws Exception {
        return tool.run(Tools.with(args, "--command-config", as));
    }

    private static void fails(String pattern, Callable<String> tool) throws Exception {
        String printed;
        try {
            printed = tool.call();
        } catch (AssertionError e) {
            Tools.prints(pattern, e.getMessage());
            return;
        }
        throw new AssertionError("it did not fail, and printed:\n" + printed);
    }

    private static void users() {
        String[] user = {"--entity-type", "users", "--entity-name", "tools-alice"};
        Check.run("kafka-configs: users, add", () -> {
            fails("SaslAuthenticationException", () -> run(topics, alice, "--list"));
            Tools.prints("Completed updating config for user tools-alice", run(configs, admin, Tools.with(user, "--alter", "--add-config", "SCRAM-SHA-256=[iterations=8192,password=other]")));
            run(configs, admin, "--alter", "--add-config", "SCRAM-SHA-512=[password=alices]", "--user", "tools-alice");
            run(topics, alice, "--list");
        });
        Check.run("kafka-configs: users, describe", () -> {
            String line = "SCRAM credential configs for user-principal 'tools-alice' are SCRAM-SHA-256=iterations=8192, SCRAM-SHA-512=iterations=4096";
            Tools.prints(line, run(configs, admin, Tools.with(user, "--describe")));
            Tools.prints(line, run(configs, admin, "--entity-type", "users", "--describe"));
        });
        Check.run("kafka-configs: users, change a password", () -> {
            run(configs, admin, Tools.with(user, "--alter", "--add-config", "SCRAM-SHA-512=[iterations=5000,password=changed]"));
            fails("SaslAuthenticationException", () -> run(topics, alice, "--list"));
            alice = scram("tools-alice", "changed");
            run(topics, alice, "--list");
        });
        Check.run("kafka-configs: users, delete", () -> {
            run(configs, admin, Tools.with(user, "--alter", "--delete-config", "SCRAM-SHA-256"));
            Tools.prints("'tools-alice' are SCRAM-SHA-512=iterations=5000", run(configs, admin, Tools.with(user, "--describe")));
            run(configs, admin, "--alter", "--add-config", "SCRAM-SHA-512=[password=gone]", "--user", "tools-gone");
            run(topics, scram("tools-gone", "gone"), "--list");
            run(configs, admin, "--alter", "--delete-config", "SCRAM-SHA-512", "--user", "tools-gone");
            fails("SaslAuthenticationException", () -> run(topics, scram("tools-gone", "gone"), "--list"));
            Tools.printsNot("tools-gone", run(configs, admin, "--entity-type", "users", "--describe"));
        });
        Check.run("kafka-configs: users, not allowed", () -> fails("ClusterAuthorizationException",
            () -> run(configs, alice, "--alter", "--add-config", "SCRAM-SHA-512=[password=mine]", "--user", "admin")));
    }

    private static String of(String operation, String permission) {
        return "\\(principal=User:tools-alice, host=\\*, operation=" + operation + ", permissionType=" + permission + "\\)";
    }

    private static void rules() {
        String[] topic = {"--topic", TOPIC};
        Check.run("kafka-acls: add", () -> {
            fails("command : Topic authorization failed", () -> run(topics, alice, "--create", "--topic", TOPIC));
            String added = run(acls, admin, Tools.with(topic, "--add", "--allow-principal", "User:tools-alice", "--operation", "Create", "--operation", "Describe"));
            Tools.prints("Adding ACLs for resource .*" + RESOURCE, added);
            Tools.prints(of("CREATE", "ALLOW"), added);
            run(topics, alice, "--create", "--topic", TOPIC);
            run(acls, admin, Tools.with(topic, "--add", "--allow-principal", "User:tools-alice", "--producer"));
            run(acls, admin, Tools.with(topic, "--add", "--allow-principal", "User:tools-alice", "--consumer", "--group", GROUP));
        });
        Check.run("kafka-acls: list", () -> {
            String listed = run(acls, admin, Tools.with(topic, "--list"));
            Tools.prints("Current ACLs for resource .*" + RESOURCE, listed);
            for (String operation : new String[] {"CREATE", "DESCRIBE", "READ", "WRITE"}) {
                Tools.prints(of(operation, "ALLOW"), listed);
            }
            Tools.prints("resourceType=GROUP, name=" + GROUP, run(acls, admin, "--list", "--group", GROUP));
        });
        Check.run("kafka-acls: by principal", () -> {
            String listed = run(acls, admin, "--list", "--principal", "User:tools-alice");
            Tools.prints(RESOURCE, listed);
            Tools.prints(GROUP, listed);
            Tools.printsNot("principal=User:(?!tools-alice)", listed);
            Tools.printsNot("principal=", run(acls, admin, "--list", "--principal", "User:tools-nobody"));
        });
        Check.run("kafka-acls: prefixed patterns", () -> {
            String[] prefixed = {"--topic", "tools.shop.", "--resource-pattern-type", "prefixed"};
            run(acls, admin, Tools.with(prefixed, "--add", "--allow-principal", "User:tools-alice", "--operation", "All"));
            Tools.prints("name=tools.shop., patternType=PREFIXED", run(acls, admin, Tools.with(prefixed, "--list")));
            Tools.prints("name=tools.shop., patternType=PREFIXED", run(acls, admin, "--list", "--topic", "tools.shop.a", "--resource-pattern-type", "match"));
            Tools.printsNot("tools.shop", run(acls, admin, "--list", "--topic", "tools.shop.a"));
            run(topics, alice, "--create", "--topic", "tools.shop.a");
            run(acls, admin, Tools.with(prefixed, "--remove", "--force"));
            Tools.printsNot("tools.shop", run(acls, admin, Tools.with(prefixed, "--list")));
            fails("command : Topic authorization failed", () -> run(topics, alice, "--create", "--topic", "tools.shop.b"));
        });
        Check.run("kafka-acls: deny, and remove", () -> {
            String[] rule = Tools.with(topic, "--deny-principal", "User:tools-alice", "--operation", "Delete", "--deny-host", "127.0.0.1");
            run(acls, admin, Tools.with(topic, "--add", "--allow-principal", "User:tools-alice", "--operation", "Delete"));
            run(acls, admin, Tools.with(rule, "--add"));
            fails("command : Topic authorization failed", () -> run(topics, alice, "--delete", "--topic", TOPIC));
            run(acls, admin, Tools.with(rule, "--remove", "--force"));
            Tools.printsNot("DENY", run(acls, admin, Tools.with(topic, "--list")));
        });
        Check.run("kafka-acls: clusters and transactional ids", () -> {
            run(acls, admin, "--add", "--allow-principal", "User:tools-other", "--operation", "DescribeConfigs", "--cluster");
            run(acls, admin, "--add", "--allow-principal", "User:tools-other", "--operation", "Write", "--transactional-id", "*");
            String listed = run(acls, admin, "--list", "--principal", "User:tools-other");
            Tools.prints("resourceType=CLUSTER, name=kafka-cluster", listed);
            Tools.prints("resourceType=TRANSACTIONAL_ID, name=\\*", listed);
            run(acls, admin, "--remove", "--force", "--allow-principal", "User:tools-other", "--operation", "DescribeConfigs", "--cluster");
            run(acls, admin, "--remove", "--force", "--transactional-id", "*");
            Tools.printsNot("principal=", run(acls, admin, "--list", "--principal", "User:tools-other"));
        });
        Check.run("kafka-acls: not allowed", () -> fails("ClusterAuthorizationException|Cluster authorization failed", () -> run(acls, alice, "--list")));
    }

    /** What the rules allow can be done, however one logs in. */
    private static void works() {
        Check.run("kafka-console-producer: SCRAM", () -> consoleProducer.runWith("v1\nv2\n", "--topic", TOPIC, "--command-config", alice));
        Check.run("kafka-console-producer: OAUTHBEARER, by Kafka's own handler", () -> consoleProducer.runWith("v3\nv4\n", "--topic", TOPIC, "--command-config", bearer()));
        Check.run("kafka-console-consumer: in a group", () -> {
            String printed = run(consoleConsumer, alice, "--topic", TOPIC, "--from-beginning", "--max-messages", "4", "--timeout-ms", "20000", "--group", GROUP);
            Check.equal("[v1, v2, v3, v4]", Arrays.toString(printed.lines().sorted().toArray()), "what was read");
        });
        Check.run("kafka-console-consumer: not allowed", () -> {
            // It says what is wrong, and exits with 0 all the same.
            run(consoleConsumer, alice, "--topic", TOPIC, "--from-beginning", "--max-messages", "4", "--timeout-ms", "20000", "--group", "tools-others");
            Tools.prints("GroupAuthorizationException", Tool.errors());
        });
        Check.run("kafka-consumer-groups: allowed and not", () -> {
            Tools.prints(GROUP + " " + TOPIC + " 0 \\d+ \\d+ 0 ", run(groups, alice, "--describe", "--group", GROUP));
            // It exits with 0 all the same.
            Tools.prints("GroupAuthorizationException", run(groups, alice, "--describe", "--group", "tools-others"));
        });
        Check.run("kafka-topics: only what may be seen, by a certificate", () -> {
            run(acls, admin, "--add", "--allow-principal", "User:carol", "--operation", "Describe", "--topic", TOPIC);
            Tool.bootstrap = env("SSL");
            String listed = run(topics, file("SSL", "ssl.keystore.type=PEM", "ssl.keystore.location=" + env("CERTIFICATE")), "--list");
            Tool.bootstrap = env("SASL_SSL");
            Tools.prints("^" + TOPIC + "$", listed);
            Tools.printsNot("tools.shop", listed);
        });
    }

    private static String bearer() throws IOException {
        return file("SASL_SSL", "sasl.mechanism=OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url=" + env("TOKENS"),
            "sasl.login.callback.handler.class=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
            "sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required clientId=\"tools-alice\" clientSecret=\"any\";");
    }

    private static void quotas() {
        quota("users", "user-principal 'tools-alice'", "producer_byte_rate=5000000", "--entity-type", "users", "--entity-name", "tools-alice");
        quota("clients", "client-id 'tools-app'", "consumer_byte_rate=5000000", "--entity-type", "clients", "--entity-name", "tools-app");
        quota("users and clients", "user-principal 'tools-alice', client-id 'tools-app'", "controller_mutation_rate=1000",
            "--entity-type", "users", "--entity-name", "tools-alice", "--entity-type", "clients", "--entity-name", "tools-app");
        quota("by default for users", "the default user-principal", "request_percentage=1000", "--entity-type", "users", "--entity-default");
        quota("by default for clients", "the default client-id", "request_percentage=2000", "--entity-type", "clients", "--entity-default");
        quota("addresses", "ip '127.0.0.7'", "connection_creation_rate=1000", "--entity-type", "ips", "--entity-name", "127.0.0.7");
        Check.run("kafka-configs: quotas, not allowed", () -> fails("ClusterAuthorizationException", () -> run(configs, alice,
            "--alter", "--add-config", "producer_byte_rate=1", "--entity-type", "users", "--entity-name", "admin")));
    }

    /** A quota is added, described and deleted. It is one that slows nobody, or that is not enforced. */
    private static void quota(String what, String whose, String quota, String... entity) {
        Check.run("kafka-configs: quotas, " + what, () -> {
            run(configs, admin, Tools.with(entity, "--alter", "--add-config", quota));
            Tools.prints("Quota configs for " + whose + " are " + quota + "\\.0", run(configs, admin, Tools.with(entity, "--describe")));
            run(configs, admin, Tools.with(entity, "--alter", "--delete-config", quota.split("=")[0]));
            Tools.printsNot(quota, run(configs, admin, Tools.with(entity, "--describe")));
        });
    }
}
