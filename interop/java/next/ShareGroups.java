import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Share groups (KIP-932), which Java has since 4.2. */
final class ShareGroups {
    private static final int PARTITIONS = 3;
    private static final int RECORDS = 60;

    private ShareGroups() {}

    /** Starts all checks at the same time, since they mostly wait, and returns what says how they ended. */
    static Runnable start() {
        Map<String, Check.Body> checks = new LinkedHashMap<>();
        checks.put("share group: accepts by polling", ShareGroups::implicit);
        checks.put("share group: accepts, releases and rejects", () -> explicit("batch_optimized"));
        checks.put("share group: no more records than asked for", () -> explicit("record_limit"));
        checks.put("share group: renews locks", ShareGroups::renew);
        checks.put("share group: two members share a partition", ShareGroups::pair);
        return Check.start(checks);
    }

    /** Creates a topic, and has the group of its name begin at the first records. */
    private static String prepare(String name, int partitions) throws Exception {
        String topic = Clients.topic(name, partitions);
        var op = new AlterConfigOp(new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET);
        Clients.get(Clients.admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.GROUP, topic), List.of(op))).all());
        return topic;
    }

    private static KafkaShareConsumer<String, String> join(String group, Object... settings) {
        Map<String, Object> config = Clients.config("group.id", group, "client.id", "sharon");
        config.putAll(Clients.config(settings));
        var c = new KafkaShareConsumer<>(config, new StringDeserializer(), new StringDeserializer());
        c.subscribe(List.of(group));
        return c;
    }

    /** Waits until the group is done with all records. */
    private static void isDone(String group) throws Exception {
        Check.until("the lag of " + group + " to be 0", () -> {
            var offsets = Clients.get(Clients.admin.listShareGroupOffsets(Map.of(group, new org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec()))
                .partitionsToOffsetInfo(group));
            return !offsets.isEmpty() && offsets.values().stream().allMatch(o -> o != null && o.lag().isPresent() && o.lag().get() == 0);
        });
    }

    private static void implicit() throws Exception {
        String group = prepare("share-implicit", PARTITIONS);
        Clients.write(group, PARTITIONS, RECORDS);
        Set<String> seen = new HashSet<>();
        try (var c = join(group)) {
            Check.until("all read", () -> {
                for (var r : c.poll(Duration.ofMillis(200))) {
                    Check.equal(true, seen.add(r.value()), "whether " + r.value() + " comes for the first time");
                    Check.equal((short) 1, r.deliveryCount().get(), "the delivery count of " + r.value());
                }
                return seen.size() == RECORDS;
            });
            c.commitSync();
            isDone(group);
        }
    }

    private static void explicit(String mode) throws Exception {
        String group = prepare("share-" + mode.replace('_', '-'), 1);
        Clients.write(group, 1, RECORDS);
        Map<String, List<Integer>> counts = new HashMap<>();
        try (var c = join(group, "share.acknowledgement.mode", "explicit", "share.acquire.mode", mode, "max.poll.records", 7)) {
            Check.until("all acknowledged", () -> {
                int n = 0;
                for (ConsumerRecord<String, String> r : c.poll(Duration.ofMillis(200))) {
                    n++;
                    int count = r.deliveryCount().get();
                    counts.computeIfAbsent(r.value(), v -> new ArrayList<>()).add(count);
                    AcknowledgeType type = r.offset() % 3 == 0 && count == 1 ? AcknowledgeType.RELEASE
                        : r.offset() % 3 == 1 ? AcknowledgeType.REJECT : AcknowledgeType.ACCEPT;
                    c.acknowledge(r, type);
                }
                Check.equal(true, n <= 7 || !mode.equals("record_limit"), n + " records of a poll");
                c.commitSync().forEach((p, e) -> Check.equal(true, e.isEmpty(), "acknowledging " + p + ": " + e));
                return counts.size() == RECORDS && counts.values().stream().mapToInt(List::size).sum() >= RECORDS + RECORDS / 3;
            });
            isDone(group);
        }
        Check.equal(0L, counts.values().stream().filter(l -> !l.equals(List.of(1)) && !l.equals(List.of(1, 2))).count(), "records with other counts: " + counts);
    }

    private static void renew() throws Exception {
        String group = prepare("share-renew", 1);
        Clients.write(group, 1, 1);
        try (var c = join(group, "share.acknowledgement.mode", "explicit")) {
            List<ConsumerRecord<String, String>> held = new ArrayList<>();
            Check.until("the record", () -> {
                c.poll(Duration.ofMillis(200)).forEach(held::add);
                return !held.isEmpty();
            });
            c.acknowledge(held.get(0), AcknowledgeType.RENEW);
            c.commitSync().forEach((p, e) -> Check.equal(true, e.isEmpty(), "renewing " + p + ": " + e));
            List<ConsumerRecord<String, String>> again = new ArrayList<>();
            Check.until("it comes from the client again", () -> {
                c.poll(Duration.ofMillis(200)).forEach(again::add);
                return !again.isEmpty();
            });
            Check.equal((short) 1, again.get(0).deliveryCount().get(), "its delivery count");
            c.acknowledge(again.get(0), AcknowledgeType.ACCEPT);
            c.commitSync().forEach((p, e) -> Check.equal(true, e.isEmpty(), "accepting " + p + ": " + e));
            isDone(group);
        }
    }

    private static void pair() throws Exception {
        String group = prepare("share-pair", 1);
        Set<Long> seen = new HashSet<>();
        Object[] settings = {"share.acquire.mode", "record_limit", "max.poll.records", 10};
        try (var a = join(group, settings); var b = join(group, settings)) {
            for (int i = 0; i < 3; i++) {
                Clients.write(group, 1, 10);
            }
            for (var c : List.of(a, b)) { // Neither accepts anything before both have something.
                Check.until("records for both", () -> {
                    int n = 0;
                    for (var r : c.poll(Duration.ofMillis(200))) {
                        Check.equal(true, seen.add(r.offset()), "whether offset " + r.offset() + " is given once");
                        n++;
                    }
                    return n > 0;
                });
            }
            Check.until("all read", () -> {
                for (var c : List.of(a, b)) {
                    for (var r : c.poll(Duration.ofMillis(200))) {
                        Check.equal(true, seen.add(r.offset()), "whether offset " + r.offset() + " is given once");
                    }
                }
                return seen.size() == 30;
            });
            a.commitSync();
            b.commitSync();
            isDone(group);
        }
    }
}
