import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Kafka's tools on a group whose member says group.protocol=consumer (KIP-848). The topic tools is there. */
final class ConsumerGroupTools {
    private static final Tool groups = new Tool("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand");
    private static final Tool allGroups = new Tool("org.apache.kafka.tools.GroupsCommand");
    private static final String group = "tools-consumer";

    private ConsumerGroupTools() {}

    static void run() {
        Map<String, Object> config = Map.of("bootstrap.servers", Tool.bootstrap, "group.id", group, "client.id", "cleo", "group.protocol", "consumer",
            "group.remote.assignor", "range", "auto.offset.reset", "earliest", "auto.commit.interval.ms", 100);
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of("tools"));
            Check.run("kafka-consumer-groups, consumer group: lag", () -> Check.until("all read and committed", () -> {
                consumer.poll(Duration.ofMillis(200));
                return !consumer.assignment().isEmpty()
                    && Tools.matches(group + " tools \\d \\d+ \\d+ 0 ", groups.run("--describe", "--group", group)) == 3;
            }));
            live();
        }
        Check.run("kafka-consumer-groups, consumer group: reset-offsets", () -> {
            String[] topic = {"--reset-offsets", "--group", group, "--topic", "tools"};
            Tools.prints(group + " tools 0 \\d+$", groups.run(Tools.with(topic, "--to-earliest", "--execute")));
            Tools.prints("tools 0 \\d+ \\d+ [1-9]", groups.run("--describe", "--group", group));
            Tools.prints(group + " tools 0 \\d+$", groups.run(Tools.with(topic, "--to-latest", "--execute")));
            Tools.prints("tools 0 \\d+ \\d+ 0 ", groups.run("--describe", "--group", group));
        });
        Check.run("kafka-consumer-groups, consumer group: delete-offsets", () -> {
            Tools.prints("tools 0 Successful", groups.run("--delete-offsets", "--group", group, "--topic", "tools:0"));
            Tools.printsNot(group + " tools 0 \\d", groups.run("--describe", "--group", group));
        });
        Check.run("kafka-consumer-groups, consumer group: delete", () -> {
            Tools.prints("successful", groups.run("--delete", "--group", group));
            Tools.printsNot("^" + group + "$", groups.run("--list"));
        });
    }

    private static void live() {
        Check.run("kafka-consumer-groups, consumer group: list", () -> {
            Tools.prints("^" + group + "$", groups.run("--list"));
            Tools.prints(group + " Stable", groups.run("--list", "--state"));
            Tools.prints(group + " Consumer", groups.run("--list", "--type"));
            Tools.prints(group + " Consumer", groups.run("--list", "--type", "consumer"));
            Tools.prints(group + " .*Consumer.*Stable|" + group + " .*Stable.*Consumer", groups.run("--list", "--type", "--state"));
            Tools.printsNot(group + " ", groups.run("--list", "--type", "classic"));
            Tools.printsNot(group + " ", groups.run("--list", "--state", "empty"));
        });
        Check.run("kafka-consumer-groups, consumer group: describe offsets", () -> {
            Tools.prints(group + " tools 2 \\d+ \\d+ 0 \\S+ /127.0.0.1 cleo", groups.run("--describe", "--offsets", "--group", group));
            Tools.prints(group + " tools 2 ", groups.run("--describe", "--offsets", "--verbose", "--group", group));
        });
        Check.run("kafka-consumer-groups, consumer group: describe members", () -> {
            Tools.prints(group + " \\S+ /127.0.0.1 cleo 3", groups.run("--describe", "--members", "--group", group));
            String verbose = groups.run("--describe", "--members", "--verbose", "--group", group);
            Tools.prints("CURRENT-EPOCH CURRENT-ASSIGNMENT TARGET-EPOCH TARGET-ASSIGNMENT", verbose);
            Tools.prints("cleo 3 (false )?\\d+ tools(:0,1,2|\\(0,1,2\\)) \\d+ tools(:0,1,2|\\(0,1,2\\))", verbose);
        });
        Check.run("kafka-consumer-groups, consumer group: describe state", () -> {
            Tools.prints(group + " 127.0.0.1:\\d+ \\(1\\) range Stable 1", groups.run("--describe", "--state", "--group", group));
            Tools.prints(group + " 127.0.0.1:\\d+ \\(1\\) range Stable \\d+ \\d+ 1", groups.run("--describe", "--state", "--verbose", "--group", group));
            Tools.prints(group + " 127.0.0.1:\\d+ \\(1\\) range Stable 1", groups.run("--describe", "--state", "--all-groups"));
        });
        Check.run("kafka-groups: consumer groups", () -> {
            Tools.prints("^" + group + " Consumer consumer", allGroups.run("--list"));
            Tools.prints("^" + group + " Consumer consumer", allGroups.run("--list", "--group-type", "consumer"));
            Tools.prints("^" + group + " Consumer consumer", allGroups.run("--list", "--consumer"));
            Tools.prints("^" + group + " Consumer consumer", allGroups.run("--list", "--protocol", "consumer"));
            Tools.printsNot("^" + group + " ", allGroups.run("--list", "--group-type", "classic"));
            Tools.printsNot("^" + group + " ", allGroups.run("--list", "--share"));
        });
    }
}
