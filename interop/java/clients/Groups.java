import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.errors.FencedInstanceIdException;

/** Consumers that share the partitions of a topic. */
final class Groups {
    private static final int PARTITIONS = 6;
    private static final int RECORDS = 60;

    private Groups() {}

    static void run() {
        Check.run("group: range", () -> comeAndGo("range", RangeAssignor.class));
        Check.run("group: roundrobin", () -> comeAndGo("roundrobin", RoundRobinAssignor.class));
        Check.run("group: sticky", () -> comeAndGo("sticky", StickyAssignor.class));
        Check.run("group: cooperative-sticky", () -> comeAndGo("cooperative-sticky", CooperativeStickyAssignor.class));
        Check.run("group: a member that vanishes", Groups::vanish);
        Check.run("group: static members restart without a rebalance", Groups::restart);
        Check.run("group: a static member that is there twice", Groups::fence);
        Check.run("group: topics by pattern, new ones and new partitions", Groups::pattern);
        Check.run("group: enforced rebalance", Groups::enforce);
    }

    /** Three members join one by one and one of them leaves, while records come. */
    private static void comeAndGo(String name, Class<?> assignor) throws Exception {
        String topic = Clients.topic("group-" + name, PARTITIONS);
        // Before 3.1 a member whose SyncGroup comes when the next rebalance has begun forgets
        // what it owns (KAFKA-13419), and then more moves than must.
        boolean frugal = assignor == CooperativeStickyAssignor.class && !Check.version().startsWith("2.");
        List<Member> members = new ArrayList<>();
        try {
            for (int i = 0; i < 3; i++) {
                members.add(new Member(topic, topic, "partition.assignment.strategy", assignor.getName(), "client.id", name + i));
                shared(members, PARTITIONS);
                Clients.write(topic, PARTITIONS, RECORDS);
            }
            if (frugal) {
                // From 6 to 3 and 3, and then to 2 each: nothing moved but what had to.
                Check.equal(5, members.get(0).revoked() + members.get(1).revoked(),
                    "partitions revoked from the first two (" + members.get(0).history() + ", " + members.get(1).history() + ", " + members.get(2).history() + ")");
            }
            int[] before = {members.get(1).revoked(), members.get(2).revoked()};
            members.remove(0).close();
            shared(members, PARTITIONS);
            if (frugal) {
                Check.equal(before[0] + before[1], members.get(0).revoked() + members.get(1).revoked(),
                    "partitions revoked from those who stayed");
            }
            Clients.write(topic, PARTITIONS, RECORDS);
            committed(topic, topic);
        } finally {
            members.forEach(Member::close);
        }
    }

    /** Waits until each partition has one owner, and no member has many more than another. */
    static void shared(List<Member> members, int partitions) throws Exception {
        Check.until(partitions + " partitions shared by " + members.size() + " members", () -> {
            int sum = 0;
            Set<Integer> all = new TreeSet<>();
            Set<Integer> generations = new HashSet<>();
            for (Member m : members) {
                if (m.error() != null) {
                    throw new IllegalStateException("a member failed", m.error());
                }
                Set<Integer> owned = m.owned();
                generations.add(m.generation());
                if (m.generation() <= 0) {
                    return false;
                }
                sum += owned.size();
                all.addAll(owned);
                if (owned.size() < partitions / members.size() || owned.size() > -(-partitions / members.size())) {
                    return false;
                }
            }
            return sum == partitions && all.size() == partitions && generations.size() == 1;
        });
    }

    /** Waits until the group has committed the ends of a topic. */
    static void committed(String group, String topic) throws Exception {
        try (var c = Clients.consumer()) {
            Check.until("the ends of " + topic + " committed", () -> {
                var offsets = Clients.get(Clients.admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata());
                for (var end : c.endOffsets(Clients.partitions(topic, PARTITIONS)).entrySet()) {
                    var offset = offsets.get(end.getKey());
                    if (offset == null || offset.offset() != end.getValue()) {
                        return false;
                    }
                }
                return true;
            });
        }
    }

    /** A member ends without leaving, and is missed when its session times out. */
    private static void vanish() throws Exception {
        String topic = Clients.topic("group-vanish", PARTITIONS);
        Object[] settings = {"session.timeout.ms", 2000, "internal.leave.group.on.close", false};
        Member stays = new Member(topic, topic, settings);
        Member goes = new Member(topic, topic, settings);
        try {
            shared(List.of(stays, goes), PARTITIONS);
            long began = System.nanoTime();
            goes.vanish();
            shared(List.of(stays), PARTITIONS);
            Check.that(System.nanoTime() - began > 1_000_000_000, "the member was missed before its session timed out");
        } finally {
            goes.close();
            stays.close();
        }
    }

    private static void restart() throws Exception {
        String topic = Clients.topic("group-static", PARTITIONS);
        Member a = new Member(topic, topic, "group.instance.id", "a");
        Member b = new Member(topic, topic, "group.instance.id", "b");
        try {
            shared(List.of(a, b), PARTITIONS);
            Set<Integer> owned = a.owned();
            String id = a.memberId();
            int generation = b.generation();
            int assignments = b.assignments();
            a.close();
            Member again = new Member(topic, topic, "group.instance.id", "a");
            try {
                Check.until("the member has its partitions back", () -> again.owned().equals(owned) && again.generation() > 0);
                Clients.write(topic, PARTITIONS, RECORDS);
                committed(topic, topic);
                Check.equal(RECORDS, again.reads() + b.reads(), "records read");
                Check.equal(generation, again.generation(), "the generation of the member that came back");
                Check.equal(generation, b.generation(), "the generation of the other");
                Check.equal(assignments, b.assignments(), "assignments of the other");
                Check.that(!id.equals(again.memberId()), "the member came back with the same member id");
            } finally {
                again.close();
            }
        } finally {
            a.close();
            b.close();
        }
    }

    private static void fence() throws Exception {
        String topic = Clients.topic("group-fence", PARTITIONS);
        Member first = new Member(topic, topic, "group.instance.id", "twin");
        try {
            shared(List.of(first), PARTITIONS);
            Member second = new Member(topic, topic, "group.instance.id", "twin");
            try {
                Check.until("the first is fenced", () -> first.error() != null);
                Check.that(first.error() instanceof FencedInstanceIdException, "the first failed with " + first.error());
                shared(List.of(second), PARTITIONS);
            } finally {
                second.close();
            }
        } finally {
            first.close();
        }
    }

    private static void pattern() throws Exception {
        String first = Clients.topic("group-pattern-1", 2);
        Pattern pattern = Pattern.compile(Clients.prefix + "group-pattern-.*");
        Member m = new Member(Clients.prefix + "group-pattern", pattern);
        try {
            Clients.write(first, 2, 10);
            Check.until("the first topic read", () -> m.reads() == 10);
            String second = Clients.topic("group-pattern-2", 2);
            Clients.write(second, 2, 10);
            Check.until("the second topic read", () -> m.reads() == 20);
            Clients.get(Clients.admin.createPartitions(java.util.Map.of(first, NewPartitions.increaseTo(4))).all());
            Clients.write(first, 4, 20);
            Check.until("the new partitions read", () -> m.reads() == 40);
        } finally {
            m.close();
        }
    }

    private static void enforce() throws Exception {
        String topic = Clients.topic("group-enforce", PARTITIONS);
        Member a = new Member(topic, topic);
        Member b = new Member(topic, topic);
        try {
            shared(List.of(a, b), PARTITIONS);
            int generation = a.generation();
            // Only the leader can, with what it says unchanged, and that is one of them.
            a.run(c -> c.enforceRebalance());
            b.run(c -> c.enforceRebalance());
            Check.until("a new generation", () -> a.generation() > generation && b.generation() > generation);
            shared(List.of(a, b), PARTITIONS);
        } finally {
            a.close();
            b.close();
        }
    }
}
