import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
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
    private final Owner.Book book = new Owner.Book();
    private final Map<String, Integer> topics = new HashMap<>();
    private final List<RecordMetadata> written = new ArrayList<>();
    private final List<Owner> all = new ArrayList<>();

    private ConsumerGroups(String group) {
        this.group = group;
    }

    static void run() {
        for (String assignor : new String[] {"uniform", "range"}) {
            Check.run("consumer group: " + assignor + ", members join, leave, crash and stall", () -> comeAndGo(assignor));
            Check.run("consumer group: " + assignor + ", static members restart without a rebalance", () -> restart(assignor));
            Check.run("consumer group: " + assignor + ", topics by pattern, new ones and new partitions", () -> follow(assignor));
            Check.run("consumer group: " + assignor + ", a topic that vanishes and comes back", () -> vanish(assignor));
        }
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
            g.all.forEach(Owner::close);
        }
    }

    private String topic(String name, int partitions) throws Exception {
        String topic = Clients.topic(name, partitions);
        topics.put(topic, partitions);
        return topic;
    }

    private Owner join(String name, Object topic, String assignor, Object... settings) {
        List<Object> more = new ArrayList<>(List.of("group.remote.assignor", assignor));
        more.addAll(List.of(settings));
        Owner o = new Owner(name, book, group, topic, more.toArray());
        all.add(o);
        return o;
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
    private void settles(Owner... members) throws Exception {
        settles(() -> {
            for (Owner o : members) {
                if (o.epoch() <= 0) {
                    return false; // The group may not be there yet.
                }
            }
            var d = describe();
            Set<TopicPartition> everything = new HashSet<>();
            topics.forEach((t, n) -> everything.addAll(Clients.partitions(t, n)));
            Set<TopicPartition> have = new HashSet<>();
            int sum = 0;
            for (Owner o : members) {
                have.addAll(o.owned());
                sum += o.owned().size();
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
            all.forEach(o -> has.append("\n").append(o.owned()));
            throw new AssertionError(has.toString(), e);
        }
    }

    private static void comeAndGo(String assignor) throws Exception {
        with("consumer-" + assignor, g -> {
            String topic = g.topic("consumer-" + assignor, PARTITIONS);
            Owner a = g.join("a", topic, assignor);
            Owner b = g.join("b", topic, assignor);
            g.settles(a, b);
            g.reads();
            Owner c = g.join("c", topic, assignor);
            g.settles(a, b, c);
            Check.equal(assignor, g.describe().partitionAssignor(), "the assignor");
            // Some are written while members come and go.
            try (var p = Clients.producer("acks", "all", "linger.ms", 0)) {
                b.close();
                write(g, p, topic);
                g.settles(a, c);
                c.crash();
                // It is thrown out by itself when it does not poll for so long.
                Owner d = g.join("d", topic, assignor, "max.poll.interval.ms", 10_000);
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
            Owner a = g.join("a", topic, assignor, "group.instance.id", "a");
            Owner b = g.join("b", topic, assignor, "group.instance.id", "b");
            g.settles(a, b);
            g.reads();
            Set<TopicPartition> owned = a.owned();
            int epoch = b.epoch();
            int changes = b.changes();
            a.close();
            Owner again = g.join("a2", topic, assignor, "group.instance.id", "a");
            g.settles(again, b);
            g.reads();
            Check.equal(owned, again.owned(), "what the member has that came back");
            Check.equal(epoch, again.epoch(), "its epoch");
            Check.equal(epoch, b.epoch(), "the epoch of the other");
            Check.equal(changes, b.changes(), "how often partitions came to the other, or went");
            again.crash();
            g.settles(b);
            g.reads();
        });
    }

    private static void follow(String assignor) throws Exception {
        with("consumer-topics-" + assignor, g -> {
            String first = g.topic("consumer-topics-" + assignor + ".1", 4);
            SubscriptionPattern pattern = new SubscriptionPattern(g.group + "\\..*");
            Owner a = g.join("a", pattern, assignor);
            Owner b = g.join("b", pattern, assignor);
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
            Owner a = g.join("a", List.of(stays, goes), assignor);
            Owner b = g.join("b", List.of(stays, goes), assignor);
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
