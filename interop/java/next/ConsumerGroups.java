import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.TopicPartition;

/** Groups whose members say group.protocol=consumer (KIP-848), which Java has since 4.0. */
final class ConsumerGroups {
    private static final int PARTITIONS = 6;
    private static final int RECORDS = 120;

    private final String group;
    private final Book book = new Book();
    private final Map<String, Integer> topics = new HashMap<>();
    private final List<RecordMetadata> written = new ArrayList<>();
    private final List<Member> all = new ArrayList<>();

    private ConsumerGroups(String group) {
        this.group = group;
    }

    /** Starts all checks at the same time, since they mostly wait, and returns what says how they ended. */
    static Runnable start() {
        Map<String, Check.Body> checks = new LinkedHashMap<>();
        for (String assignor : new String[] {"uniform", "range"}) {
            checks.put("consumer group: " + assignor + ", members join, leave, crash and stall", () -> comeAndGo(assignor));
            checks.put("consumer group: " + assignor + ", static members restart without a rebalance", () -> restart(assignor));
            checks.put("consumer group: " + assignor + ", topics by pattern, new ones and new partitions", () -> follow(assignor));
            checks.put("consumer group: " + assignor + ", a topic that vanishes and comes back", () -> vanish(assignor));
        }
        return Check.start(checks);
    }

    private interface Body {
        void run(ConsumerGroups g) throws Exception;
    }

    /** Runs something with a group whose members are ended then. */
    private static void with(String name, Body body) throws Exception {
        ConsumerGroups g = new ConsumerGroups(Clients.prefix + name);
        try {
            body.run(g);
            g.book.check();
        } finally {
            g.all.forEach(Member::close);
        }
    }

    private String topic(String name, int partitions) throws Exception {
        String topic = Clients.topic(name, partitions);
        topics.put(topic, partitions);
        return topic;
    }

    private Member join(String name, Object topic, String assignor, Object... settings) {
        List<Object> more = new ArrayList<>(List.of(
            "group.protocol", "consumer", "group.remote.assignor", assignor, "client.id", name, "allow.auto.create.topics", "false"));
        more.addAll(List.of(settings));
        Member m = new Member(book, group, topic, more.toArray());
        all.add(m);
        return m;
    }

    /** Writes records to all partitions of all topics, and waits until all are read and their ends committed. */
    private void reads() throws Exception {
        for (var t : topics.entrySet()) {
            written.addAll(Clients.write(t.getKey(), t.getValue(), RECORDS));
        }
        hasRead();
    }

    private void hasRead() throws Exception {
        Check.until("all " + written.size() + " records read", () ->
            written.stream().allMatch(w -> book.has(new TopicPartition(w.topic(), w.partition()), w.offset())));
        Map<TopicPartition, Long> ends = new HashMap<>();
        written.forEach(w -> ends.merge(new TopicPartition(w.topic(), w.partition()), w.offset() + 1, Math::max));
        Check.until("the ends committed", () -> {
            var offsets = Clients.get(Clients.admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata());
            return ends.entrySet().stream().allMatch(e -> offsets.get(e.getKey()) != null && offsets.get(e.getKey()).offset() == e.getValue());
        });
    }

    private ConsumerGroupDescription describe() throws Exception {
        return Clients.get(Clients.admin.describeConsumerGroups(List.of(group)).describedGroups().get(group));
    }

    /** Waits until the group is stable with these members, who have everything, and know it. */
    private void settles(Member... members) throws Exception {
        settles(() -> {
            for (Member m : members) {
                if (m.error() != null) {
                    throw new IllegalStateException(m + " failed", m.error());
                }
                if (m.generation() <= 0) {
                    return false; // The group may not be there yet.
                }
            }
            var d = describe();
            Set<TopicPartition> everything = new HashSet<>();
            topics.forEach((t, n) -> everything.addAll(Clients.partitions(t, n)));
            Set<TopicPartition> have = new HashSet<>();
            int sum = 0;
            for (Member m : members) {
                Set<TopicPartition> owned = book.of(m);
                have.addAll(owned);
                sum += owned.size();
            }
            return d.groupState() == GroupState.STABLE && d.members().size() == members.length && sum == have.size() && have.equals(everything);
        });
        book.check();
    }

    /** Waits until it has settled, and otherwise tells how it is. */
    private void settles(java.util.concurrent.Callable<Boolean> settled) throws Exception {
        try {
            Check.until("the group to settle", settled);
        } catch (AssertionError e) {
            StringBuilder has = new StringBuilder(describe().toString());
            all.forEach(m -> has.append("\n").append(m).append(" has ").append(book.of(m)));
            throw new AssertionError(has.toString(), e);
        }
    }

    private static void comeAndGo(String assignor) throws Exception {
        with("consumer-" + assignor, g -> {
            String topic = g.topic("consumer-" + assignor, PARTITIONS);
            Member a = g.join("a", topic, assignor);
            Member b = g.join("b", topic, assignor);
            g.settles(a, b);
            g.reads();
            Member c = g.join("c", topic, assignor);
            g.settles(a, b, c);
            Check.equal(assignor, g.describe().partitionAssignor(), "the assignor");
            // Some are written while members come and go.
            try (var p = Clients.producer("acks", "all", "linger.ms", 0)) {
                b.close();
                write(g, p, topic);
                g.settles(a, c);
                c.vanish();
                // It is thrown out by itself when it does not poll for so long.
                Member d = g.join("d", topic, assignor, "max.poll.interval.ms", 10_000);
                write(g, p, topic);
                g.settles(a, d);
                d.stall();
                g.settles(a);
                write(g, p, topic);
                d.resume();
                g.settles(a, d);
            }
            g.reads();
        });
    }

    private static void write(ConsumerGroups g, org.apache.kafka.clients.producer.KafkaProducer<String, String> p, String topic) throws Exception {
        for (int i = 0; i < RECORDS; i++) {
            g.written.add(p.send(new ProducerRecord<>(topic, i % PARTITIONS, "k" + i, "v" + i)).get(30, TimeUnit.SECONDS));
        }
    }

    private static void restart(String assignor) throws Exception {
        with("consumer-static-" + assignor, g -> {
            String topic = g.topic("consumer-static-" + assignor, PARTITIONS);
            Member a = g.join("a", topic, assignor, "group.instance.id", "a");
            Member b = g.join("b", topic, assignor, "group.instance.id", "b");
            g.settles(a, b);
            g.reads();
            Set<TopicPartition> owned = g.book.of(a);
            int epoch = b.generation();
            int changes = b.changes();
            a.close();
            Member again = g.join("a2", topic, assignor, "group.instance.id", "a");
            g.settles(again, b);
            g.reads();
            Check.equal(owned, g.book.of(again), "what the member has that came back");
            Check.equal(epoch, again.generation(), "its epoch");
            Check.equal(epoch, b.generation(), "the epoch of the other");
            Check.equal(changes, b.changes(), "how often partitions came to the other, or went");
            again.vanish();
            g.settles(b);
            g.reads();
        });
    }

    private static void follow(String assignor) throws Exception {
        with("consumer-topics-" + assignor, g -> {
            String first = g.topic("consumer-topics-" + assignor + ".1", 4);
            Member.Subscription pattern = (c, listener) -> c.subscribe(new SubscriptionPattern(g.group + "\\..*"), listener);
            Member a = g.join("a", pattern, assignor);
            Member b = g.join("b", pattern, assignor);
            g.settles(a, b);
            g.reads();
            String second = g.topic("consumer-topics-" + assignor + ".2", 3);
            g.settles(a, b);
            g.reads();
            Clients.get(Clients.admin.createPartitions(Map.of(first, NewPartitions.increaseTo(6))).all());
            g.topics.put(first, 6);
            g.settles(a, b);
            g.reads();
        });
    }

    /** Is with topics by name: a metadata request by the id of a topic that is gone breaks the network thread of these clients. */
    private static void vanish(String assignor) throws Exception {
        with("consumer-vanish-" + assignor, g -> {
            String stays = g.topic("consumer-vanish-" + assignor + ".1", 4);
            String goes = g.topic("consumer-vanish-" + assignor + ".2", 3);
            Member a = g.join("a", List.of(stays, goes), assignor);
            Member b = g.join("b", List.of(stays, goes), assignor);
            g.settles(a, b);
            g.reads();
            Clients.get(Clients.admin.deleteTopics(List.of(goes)).all());
            g.topics.remove(goes);
            g.settles(a, b);
            g.written.removeIf(w -> w.topic().equals(goes));
            g.book.forget(goes);
            g.reads();
            g.topic("consumer-vanish-" + assignor + ".2", 2);
            g.settles(a, b);
            g.reads();
        });
    }
}
