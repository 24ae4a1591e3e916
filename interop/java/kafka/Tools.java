import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Kafka's own command line tools, against the broker that the first argument names. */
final class Tools {
    private static final Tool topics = new Tool("org.apache.kafka.tools.TopicCommand");
    private static final Tool groups = new Tool("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand");
    private static final Tool configs = new Tool("kafka.admin.ConfigCommand");
    private static final Tool offsets = new Tool("org.apache.kafka.tools.GetOffsetShell");
    private static final Tool consoleProducer = new Tool("org.apache.kafka.tools.ConsoleProducer");
    private static final Tool consoleConsumer = new Tool("org.apache.kafka.tools.consumer.ConsoleConsumer");

    private Tools() {}

    public static void main(String[] args) throws Exception {
        Check.begin();
        Tool.bootstrap = args[0];
        Tool.capture();
        topics();
        console();
        configs();
        offsets();
        groups();
        ConsumerGroupTools.run();
        ShareGroupTools.run();
        verifiable();
        performance();
        others();
        TransactionsTool.run();
        Check.end();
    }

    /** Demands that a pattern is found in what a tool printed, white space of any width being a blank. */
    static void prints(String pattern, String printed) {
        Check.that(matches(pattern, printed) > 0, "no " + pattern + " in:\n" + printed);
    }

    static long matches(String pattern, String printed) {
        return Pattern.compile(pattern, Pattern.MULTILINE).matcher(printed.replaceAll("[ \t]+", " ")).results().count();
    }

    static void printsNot(String pattern, String printed) {
        Check.that(matches(pattern, printed) == 0, pattern + " in:\n" + printed);
    }

    /** Runs a tool over everything, and again if that failed: others delete topics and groups meanwhile. */
    private static String again(Callable<String> tool) throws Exception {
        for (int i = 0; i < 5; i++) {
            try {
                return tool.call();
            } catch (AssertionError e) {
                // It may have come across something that is gone.
            }
        }
        return tool.call();
    }

    private static void topics() {
        Check.run("kafka-topics: create", () -> {
            prints("Created topic tools", topics.run("--create", "--topic", "tools", "--partitions", "2", "--config", "retention.ms=86400000"));
            topics.run("--create", "--topic", "tools", "--partitions", "2", "--if-not-exists");
        });
        Check.run("kafka-topics: list", () -> prints("^tools$", topics.run("--list")));
        Check.run("kafka-topics: describe", () -> {
            String described = topics.run("--describe", "--topic", "tools");
            prints("Topic: tools TopicId: \\S+ PartitionCount: 2 ReplicationFactor: 1 Configs: .*retention.ms=86400000", described);
            prints("Topic: tools Partition: 1 Leader: \\d+ Replicas: \\d+ Isr: \\d+", described);
            prints("Topic: tools ", again(() -> topics.run("--describe", "--topics-with-overrides")));
            Check.equal("", again(() -> topics.run("--describe", "--under-replicated-partitions")).strip(), "under-replicated partitions");
        });
        Check.run("kafka-topics: alter", () -> {
            topics.run("--alter", "--topic", "tools", "--partitions", "3");
            prints("PartitionCount: 3", topics.run("--describe", "--topic", "tools"));
        });
        Check.run("kafka-topics: delete", () -> {
            topics.run("--create", "--topic", "tools-gone");
            topics.run("--delete", "--topic", "tools-gone");
            printsNot("tools-gone", topics.run("--list"));
        });
    }

    private static void console() {
        Check.run("kafka-console-producer: keys and headers", () -> {
            StringBuilder lines = new StringBuilder();
            for (int i = 0; i < 20; i++) {
                lines.append("h:").append(i).append("\tkey").append(i).append("\tvalue").append(i).append('\n');
            }
            consoleProducer.runWith(lines.toString(), "--topic", "tools", "--reader-property", "parse.key=true", "--reader-property", "parse.headers=true");
        });
        Check.run("kafka-console-producer: acks and compression", () -> consoleProducer.runWith("value20\nvalue21\n",
            "--topic", "tools", "--producer-property", "acks=1", "--compression-codec", "zstd"));
        Check.run("kafka-console-consumer: from the beginning", () -> {
            String printed = consoleConsumer.run("--topic", "tools", "--from-beginning", "--max-messages", "22", "--timeout-ms", "20000",
                "--formatter-property", "print.key=true", "--formatter-property", "print.headers=true", "--formatter-property", "print.offset=true");
            prints("^Offset:\\d+ h:7 key7 value7$", printed);
            prints("^Offset:\\d+ NO_HEADERS null value20$", printed);
            Check.equal(22L, printed.lines().distinct().count(), "lines");
        });
        Check.run("kafka-console-consumer: in a group", () -> {
            String printed = consoleConsumer.run("--topic", "tools", "--from-beginning", "--max-messages", "22", "--timeout-ms", "20000",
                "--group", "tools-console");
            Check.equal(22L, printed.lines().distinct().count(), "lines");
            Check.equal(3L, matches("^tools-console tools \\d \\d+ \\d+ 0 ", groups.run("--describe", "--group", "tools-console")), "partitions without lag");
        });
    }

    private static void configs() {
        Check.run("kafka-configs: topics", () -> {
            String[] topic = {"--entity-type", "topics", "--entity-name", "tools"};
            configs.run(with(topic, "--alter", "--add-config", "retention.bytes=1000000,cleanup.policy=[compact,delete]"));
            prints("retention.bytes=1000000 ", configs.run(with(topic, "--describe")));
            prints("cleanup.policy=compact,delete ", configs.run(with(topic, "--describe")));
            configs.run(with(topic, "--alter", "--delete-config", "retention.bytes,cleanup.policy"));
            printsNot("retention.bytes", configs.run(with(topic, "--describe")));
            prints("segment.bytes=", configs.run(with(topic, "--describe", "--all")));
        });
        Check.run("kafka-configs: brokers", () -> {
            String[] broker = {"--entity-type", "brokers", "--entity-name", "1"};
            prints("group.initial.rebalance.delay.ms=0 ", configs.run(with(broker, "--describe", "--all")));
            configs.run(with(broker, "--alter", "--add-config", "log.index.interval.bytes=5000"));
            prints("log.index.interval.bytes=5000 ", configs.run(with(broker, "--describe")));
            configs.run(with(broker, "--alter", "--delete-config", "log.index.interval.bytes"));
            String[] all = {"--entity-type", "brokers", "--entity-default"};
            configs.run(with(all, "--alter", "--add-config", "log.index.interval.bytes=6000"));
            prints("log.index.interval.bytes=6000 ", configs.run(with(all, "--describe")));
            configs.run(with(all, "--alter", "--delete-config", "log.index.interval.bytes"));
        });
        Check.run("kafka-configs: groups", () -> {
            String[] group = {"--entity-type", "groups", "--entity-name", "tools-settings"};
            configs.run(with(group, "--alter", "--add-config", "consumer.heartbeat.interval.ms=6000,consumer.session.timeout.ms=50000"));
            String described = configs.run(with(group, "--describe"));
            prints("consumer.heartbeat.interval.ms=6000 .*GROUP_CONFIG:consumer.heartbeat.interval.ms=6000, .*DEFAULT_CONFIG:group.consumer.heartbeat.interval.ms=5000", described);
            prints("consumer.session.timeout.ms=50000 ", described);
            printsNot("consumer.assignment.interval.ms", described);
            prints("consumer.assignment.interval.ms=100 ", configs.run(with(group, "--describe", "--all")));
            prints("group tools-settings", configs.run("--entity-type", "groups", "--describe"));
            configs.run(with(group, "--alter", "--delete-config", "consumer.heartbeat.interval.ms,consumer.session.timeout.ms"));
            printsNot("tools-settings", configs.run("--entity-type", "groups", "--describe"));
        });
    }

    static String[] with(String[] some, String... more) {
        String[] all = Arrays.copyOf(some, some.length + more.length);
        System.arraycopy(more, 0, all, some.length, more.length);
        return all;
    }

    private static void offsets() {
        Check.run("kafka-get-offsets: earliest, latest, newest, by time", () -> {
            Check.equal(3L, offsets.run("--topic", "tools").lines().count(), "partitions");
            prints("^tools:1:\\d+$", offsets.run("--topic-partitions", "tools:1", "--time", "earliest"));
            prints("^tools:[012]:\\d+$", offsets.run("--topic", "tools", "--time", "max-timestamp"));
            prints("^tools:[012]:\\d+$", offsets.run("--topic", "tools", "--time", "1600000000000"));
            Check.equal("", offsets.run("--topic", "tools", "--time", "4000000000000").replaceAll("tools:\\d:\n?", ""), "offsets of a time to come");
        });
    }

    private static final String group = "tools-group";

    private static void groups() throws Exception {
        Map<String, Object> config = Map.of("bootstrap.servers", Tool.bootstrap, "group.id", group, "client.id", "carl",
            "auto.offset.reset", "earliest", "auto.commit.interval.ms", 100, "group.instance.id", "c1");
        KafkaConsumer<String, String> consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(List.of("tools"));
        Check.run("kafka-consumer-groups: lag", () -> Check.until("all read and committed", () -> {
            consumer.poll(Duration.ofMillis(200));
            return matches(group + " tools \\d \\d+ \\d+ 0 ", groups.run("--describe", "--group", group)) == 3;
        }));
        live();
        consumer.close(CloseOptions.groupMembershipOperation(CloseOptions.GroupMembershipOperation.LEAVE_GROUP));
        Check.run("kafka-consumer-groups: reset-offsets", Tools::reset);
        Check.run("kafka-consumer-groups: delete-offsets", () -> {
            prints("tools 0 Successful", groups.run("--delete-offsets", "--group", group, "--topic", "tools:0"));
            printsNot(group + " tools 0 \\d", groups.run("--describe", "--group", group));
        });
        Check.run("kafka-consumer-groups: delete", () -> {
            prints("successful", groups.run("--delete", "--group", group));
            printsNot(group, groups.run("--list"));
        });
    }

    private static void live() {
        Check.run("kafka-consumer-groups: list", () -> {
            prints("^" + group + "$", groups.run("--list"));
            prints(group + " .*Stable", groups.run("--list", "--state"));
            prints(group + " .*[Cc]lassic", groups.run("--list", "--type"));
            printsNot(group, groups.run("--list", "--state", "empty"));
        });
        Check.run("kafka-consumer-groups: describe offsets", () -> {
            prints(group + " tools 2 \\d+ \\d+ 0 \\S+ /127.0.0.1 carl", groups.run("--describe", "--offsets", "--group", group));
            prints(group + " tools 2 ", groups.run("--describe", "--offsets", "--verbose", "--group", group));
        });
        Check.run("kafka-consumer-groups: describe members", () -> {
            prints(group + " \\S+ (c1 )?/127.0.0.1 carl 3", groups.run("--describe", "--members", "--group", group));
            prints("tools:0,1,2|tools\\(0,1,2\\)", groups.run("--describe", "--members", "--verbose", "--group", group));
        });
        Check.run("kafka-consumer-groups: describe state", () -> {
            prints(group + " 127.0.0.1:\\d+ \\(1\\) range Stable 1", groups.run("--describe", "--state", "--group", group));
            prints(group + " ", groups.run("--describe", "--state", "--verbose", "--group", group));
            prints(group + " ", again(() -> groups.run("--describe", "--all-groups", "--state")));
        });
    }

    /** The offset of a time, or earliest or latest, in partition 0. */
    private static String offset(String time) throws Exception {
        return offsets.run("--topic-partitions", "tools:0", "--time", time).strip().replace("tools:0:", "");
    }

    private static void reset() throws Exception {
        String first = offset("earliest");
        String end = offset("latest");
        String[] topic = {"--reset-offsets", "--group", group, "--topic", "tools"};
        prints(group + " tools 0 " + first + "$", groups.run(with(topic, "--to-earliest", "--dry-run")));
        prints("tools 0 " + end + " ", groups.run("--describe", "--group", group));
        groups.run(with(topic, "--to-earliest", "--execute"));
        prints("tools 0 " + first + " ", groups.run("--describe", "--group", group));
        groups.run(with(topic, "--to-latest", "--execute"));
        prints("tools 0 " + end + " ", groups.run("--describe", "--group", group));
        prints("tools 0 " + (Long.parseLong(end) - 1) + "$", groups.run(with(topic, "--shift-by", "-1", "--execute")));
        prints("tools 0 " + first + "$", groups.run(with(topic, "--to-offset", first, "--execute")));
        prints("tools 0 " + offset("1600000000000") + "$", groups.run(with(topic, "--by-duration", "PT1H", "--execute")));
        prints("tools 0 " + end + "$", groups.run(with(topic, "--to-datetime", "2100-01-01T00:00:00.000", "--execute")));
        prints("tools 0 " + end + "$", groups.run("--reset-offsets", "--group", group, "--all-topics", "--to-current", "--execute"));
        Path plan = Files.createTempFile("offsets", ".csv");
        Files.writeString(plan, groups.run(with(topic, "--to-earliest", "--export", "--dry-run")));
        prints("tools 0 " + first + "$", groups.run("--reset-offsets", "--group", group, "--from-file", plan.toString(), "--execute"));
        Files.delete(plan);
    }

    private static void verifiable() {
        Check.run("kafka-verifiable-producer: 100 records", () -> {
            // It tells when its JVM ends.
            try (Jvm producer = new Jvm("org.apache.kafka.tools.VerifiableProducer", "--bootstrap-server", Tool.bootstrap,
                "--topic", "verifiable", "--max-messages", "100", "--repeating-keys", "7")) {
                Check.equal(0, producer.end(), "the exit code");
                prints("\"sent\":100,\"acked\":100", producer.output());
            }
        });
        Check.run("kafka-verifiable-consumer: 100 records", () -> {
            Tool consumer = new Tool("org.apache.kafka.tools.VerifiableConsumer");
            String printed = consumer.run("--topic", "verifiable", "--max-messages", "100", "--group-id", "verifiable", "--verbose");
            TreeSet<String> values = new TreeSet<>();
            Pattern.compile("\"value\":\"(\\d+)\"").matcher(printed).results().forEach(m -> values.add(m.group(1)));
            Check.equal(100, values.size(), "values");
            prints("offsets_committed.*\"success\":true", printed);
        });
    }

    private static void performance() {
        Check.run("kafka-producer-perf-test: 20,000 records", () -> {
            Tool producer = new Tool("org.apache.kafka.tools.ProducerPerformance");
            prints("^20000 records sent", producer.run("--topic", "performance", "--num-records", "20000", "--record-size", "100", "--throughput", "-1"));
        });
        Check.run("kafka-consumer-perf-test: 20,000 records", () -> {
            Tool consumer = new Tool("org.apache.kafka.tools.ConsumerPerformance");
            prints(", 20000, ", consumer.run("--topic", "performance", "--num-records", "20000", "--hide-header"));
        });
        Check.run("kafka-e2e-latency: 100 records", () -> {
            prints("^Avg latency", new Tool("org.apache.kafka.tools.EndToEndLatency").run(
                "--topic", "latency", "--num-records", "100", "--producer-acks", "all", "--record-size", "100"));
        });
    }

    private static void others() {
        Check.run("kafka-delete-records: one partition", () -> {
            Path request = Files.createTempFile("delete", ".json");
            Files.writeString(request, "{\"version\":1,\"partitions\":[{\"topic\":\"performance\",\"partition\":0,\"offset\":-1}]}");
            prints("partition: performance-0 low_watermark: \\d+", new Tool("org.apache.kafka.tools.DeleteRecordsCommand").run("--offset-json-file", request.toString()));
            Files.delete(request);
        });
        Check.run("kafka-log-dirs: describe", () -> prints("\"partition\":\"tools-0\",\"size\":\\d+",
            new Tool("org.apache.kafka.tools.LogDirsCommand").run("--describe", "--topic-list", "tools")));
        Check.run("kafka-groups: list", () -> prints("^verifiable Classic consumer", new Tool("org.apache.kafka.tools.GroupsCommand").run("--list")));
        Check.run("kafka-cluster: cluster-id", () -> prints("Cluster ID: \\S+", new Tool("org.apache.kafka.tools.ClusterTool").run("cluster-id")));
        Check.run("kafka-broker-api-versions: all", () -> prints("JoinGroup\\(11\\): 0 to 9",
            new Tool("org.apache.kafka.tools.BrokerApiVersionsCommand").run()));
        Check.run("kafka-leader-election: preferred", () -> prints("tools-0|Valid replica already elected",
            new Tool("org.apache.kafka.tools.LeaderElectionCommand").run("--election-type", "preferred", "--topic", "tools", "--partition", "0")));
        Check.run("kafka-reassign-partitions: list", () -> prints("No partition reassignments found",
            new Tool(REASSIGN).run("--list")));
        Check.run("kafka-reassign-partitions: generate, execute, verify, cancel", Tools::reassign);
        Check.run("kafka-metadata-quorum: status, replication", () -> {
            prints("LeaderId: +\\d+", new Tool("org.apache.kafka.tools.MetadataQuorumCommand", true).run("describe", "--status"));
            prints("Leader\\s*$", new Tool("org.apache.kafka.tools.MetadataQuorumCommand", true).run("describe", "--replication"));
        });
        Check.run("kafka-features: describe, upgrade", () -> {
            prints("Feature: transaction.version.*FinalizedVersionLevel: 2", new Tool("org.apache.kafka.tools.FeatureCommand", true).run("describe"));
            prints("group.version was upgraded to 1", new Tool("org.apache.kafka.tools.FeatureCommand", true).run("upgrade", "--feature", "group.version=1"));
        });
    }

    private static final String REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand";

    /** Gives a partition to the broker that leads it, which is all that can be done where there is one. */
    private static void reassign() throws Exception {
        var topics = Files.createTempFile("topics", ".json");
        Files.writeString(topics, "{\"version\":1,\"topics\":[{\"topic\":\"tools\"}]}");
        prints("\"topic\":\"tools\",\"partition\":0,\"replicas\":\\[1\\]",
            new Tool(REASSIGN).run("--generate", "--topics-to-move-json-file", topics.toString(), "--broker-list", "1"));
        var moves = Files.createTempFile("moves", ".json");
        Files.writeString(moves, "{\"version\":1,\"partitions\":[{\"topic\":\"tools\",\"partition\":0,\"replicas\":[1]}]}");
        prints("Successfully started partition reassignment for tools-0", new Tool(REASSIGN).run("--execute", "--reassignment-json-file", moves.toString()));
        prints("Reassignment of partition tools-0 is completed", new Tool(REASSIGN).run("--verify", "--reassignment-json-file", moves.toString()));
        prints("None of the specified partition reassignments are active", new Tool(REASSIGN).run("--cancel", "--reassignment-json-file", moves.toString()));
        Files.delete(topics);
        Files.delete(moves);
    }
}
