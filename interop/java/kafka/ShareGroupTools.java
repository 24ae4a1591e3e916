import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Kafka's tools on share groups (KIP-932). The topic tools is there. */
final class ShareGroupTools {
    private static final Tool shares = new Tool("org.apache.kafka.tools.consumer.group.ShareGroupCommand");
    private static final Tool allGroups = new Tool("org.apache.kafka.tools.GroupsCommand");
    private static final Tool configs = new Tool("kafka.admin.ConfigCommand");
    private static final String group = "tools-share";

    private ShareGroupTools() {}

    static void run() {
        Check.run("kafka-configs: settings of a share group", () -> {
            configs.run("--alter", "--entity-type", "groups", "--entity-name", group, "--add-config", "share.auto.offset.reset=earliest");
            Tools.prints("share.auto.offset.reset=earliest", configs.run("--describe", "--entity-type", "groups", "--entity-name", group));
        });
        Map<String, Object> config = Map.of("bootstrap.servers", Tool.bootstrap, "group.id", group, "client.id", "sharon");
        try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of("tools"));
            Check.run("kafka-share-groups: describe offsets", () -> Check.until("no lag", () -> {
                consumer.poll(Duration.ofMillis(200));
                return Tools.matches(group + " tools \\d \\d+ 0$", shares.run("--describe", "--group", group)) == 3;
            }));
            Check.run("kafka-share-groups: describe members and state", () -> {
                Tools.prints(group + " \\S+ /127.0.0.1 sharon .*tools", shares.run("--describe", "--members", "--group", group));
                Tools.prints(group + " 127.0.0.1:\\d+ \\(1\\) Stable 1", shares.run("--describe", "--state", "--group", group));
            });
            Check.run("kafka-share-groups: list", () -> {
                Tools.prints("^" + group + "$", shares.run("--list"));
                Tools.prints(group + " Stable", shares.run("--list", "--state"));
                Tools.prints("^" + group + " Share share", allGroups.run("--list", "--share"));
            });
        }
        Check.run("kafka-share-groups: reset-offsets", () -> {
            Tools.prints(group + " tools 0 \\d+", shares.run("--reset-offsets", "--group", group, "--topic", "tools", "--to-earliest", "--execute"));
            Tools.prints(group + " tools 0 \\d+ [1-9]", shares.run("--describe", "--group", group));
        });
        Check.run("kafka-share-groups: delete-offsets", () -> Tools.prints("tools Successful", shares.run("--delete-offsets", "--group", group, "--topic", "tools")));
        Check.run("kafka-share-groups: delete", () -> {
            Tools.prints("successful", shares.run("--delete", "--group", group));
            Tools.printsNot("^" + group + "$", shares.run("--list"));
        });
    }
}
