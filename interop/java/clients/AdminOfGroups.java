import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.ConsumerGroupListing;
import org.apache.kafka.clients.admin.ListConsumerGroupsOptions;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.ConsumerGroupState;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.GroupIdNotFoundException;
import org.apache.kafka.common.errors.GroupNotEmptyException;
import org.apache.kafka.common.errors.GroupSubscribedToTopicException;
import org.apache.kafka.common.errors.UnknownMemberIdException;

/** The Admin client over groups. */
final class AdminOfGroups {
    private AdminOfGroups() {}

    private static final Admin admin = Clients.admin;

    static void run() throws Exception {
        String group = Clients.topic("admin-group", 2);
        Clients.write(group, 2, 10);
        Member a = new Member(group, group, "client.id", "anna", "group.instance.id", "one");
        Member b = new Member(group, group, "client.id", "bert");
        try {
            Check.run("admin: list groups", () -> {
                Groups.shared(List.of(a, b), 2);
                list(group);
            });
            Check.run("admin: describe groups", () -> describe(group));
            Check.run("admin: what a live group refuses", () -> refuse(group));
            Check.run("admin: remove members", () -> remove(group, a, b));
        } finally {
            a.close();
            b.close();
        }
        Check.run("admin: alter, list and delete offsets", () -> offsets(group));
        Check.run("admin: delete groups", () -> delete(group));
    }

    private static void list(String group) throws Exception {
        ConsumerGroupListing listing = find(new ListConsumerGroupsOptions(), group);
        Check.that(listing != null && !listing.isSimpleConsumerGroup(), "the group is not listed: " + listing);
        Check.that(find(inState(ConsumerGroupState.STABLE), group) != null, "the group is not listed as stable");
        Check.that(find(inState(ConsumerGroupState.EMPTY), group) == null, "the group is listed as empty");
    }

    private static ListConsumerGroupsOptions inState(ConsumerGroupState state) {
        return new ListConsumerGroupsOptions().inStates(Set.of(state));
    }

    private static ConsumerGroupListing find(ListConsumerGroupsOptions options, String group) throws Exception {
        for (ConsumerGroupListing l : Clients.get(admin.listConsumerGroups(options).all())) {
            if (l.groupId().equals(group)) {
                return l;
            }
        }
        return null;
    }

    private static void describe(String group) throws Exception {
        ConsumerGroupDescription d = Clients.get(admin.describeConsumerGroups(List.of(group)).all()).get(group);
        Check.equal(ConsumerGroupState.STABLE, d.state(), "the state");
        Check.equal("range", d.partitionAssignor(), "the assignor");
        Check.that(d.coordinator() != null && d.coordinator().port() > 0, "no coordinator: " + d);
        Set<TopicPartition> assigned = new java.util.HashSet<>();
        List<String> clients = new ArrayList<>();
        for (MemberDescription m : d.members()) {
            assigned.addAll(m.assignment().topicPartitions());
            clients.add(m.clientId() + " " + m.groupInstanceId().orElse("-") + " " + m.host());
            Check.that(!m.consumerId().isEmpty(), "a member without id");
        }
        clients.sort(null);
        Check.equal(List.of("anna one /127.0.0.1", "bert - /127.0.0.1"), clients, "members");
        Check.equal(Set.copyOf(Clients.partitions(group, 2)), assigned, "partitions assigned");
    }

    private static void refuse(String group) {
        Check.fails(GroupNotEmptyException.class, "deleting a live group",
            () -> Clients.get(admin.deleteConsumerGroups(List.of(group)).all()));
        Check.fails(GroupSubscribedToTopicException.class, "deleting offsets of a topic that is read",
            () -> Clients.get(admin.deleteConsumerGroupOffsets(group, Set.of(new TopicPartition(group, 0))).all()));
        Check.fails(UnknownMemberIdException.class, "altering the offsets of a live group",
            () -> Clients.get(admin.alterConsumerGroupOffsets(group, Map.of(new TopicPartition(group, 0), new OffsetAndMetadata(0))).all()));
    }

    private static void remove(String group, Member fixed, Member dynamic) throws Exception {
        Check.fails(UnknownMemberIdException.class, "removing a member that does not exist", () -> Clients.get(
            admin.removeMembersFromConsumerGroup(group, new RemoveMembersFromConsumerGroupOptions(List.of(new MemberToRemove("two")))).all()));
        dynamic.close();
        fixed.close();
        Clients.get(admin.removeMembersFromConsumerGroup(group,
            new RemoveMembersFromConsumerGroupOptions(List.of(new MemberToRemove("one")))).all());
        String all = Clients.prefix + "admin-remove-all";
        try (Member m = new Member(all, group)) {
            Groups.shared(List.of(m), 2);
            String id = m.memberId();
            Clients.get(admin.removeMembersFromConsumerGroup(all, new RemoveMembersFromConsumerGroupOptions()).all());
            Check.until("the member joined again", () -> !m.memberId().isEmpty() && !m.memberId().equals(id));
        }
    }

    private static void offsets(String group) throws Exception {
        TopicPartition p0 = new TopicPartition(group, 0);
        TopicPartition p1 = new TopicPartition(group, 1);
        Check.until("the group is empty", () -> find(inState(ConsumerGroupState.EMPTY), group) != null);
        Clients.get(admin.alterConsumerGroupOffsets(group, Map.of(
            p0, new OffsetAndMetadata(3, "three"), p1, new OffsetAndMetadata(4))).all());
        Check.equal(Map.of(p0, new OffsetAndMetadata(3, "three"), p1, new OffsetAndMetadata(4)), committed(group), "offsets");
        Clients.get(admin.deleteConsumerGroupOffsets(group, Set.of(p0)).all());
        Check.equal(Map.of(p1, new OffsetAndMetadata(4)), committed(group), "offsets after deletion");
        // A group that nobody ever joined.
        String simple = Clients.prefix + "admin-simple";
        Clients.get(admin.alterConsumerGroupOffsets(simple, Map.of(p0, new OffsetAndMetadata(1))).all());
        Check.that(find(new ListConsumerGroupsOptions(), simple).isSimpleConsumerGroup(), "the group is not simple");
    }

    private static Map<TopicPartition, OffsetAndMetadata> committed(String group) throws Exception {
        return Clients.get(admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata());
    }

    private static void delete(String group) throws Exception {
        Clients.get(admin.deleteConsumerGroups(List.of(group, Clients.prefix + "admin-simple")).all());
        Check.that(find(new ListConsumerGroupsOptions(), group) == null, "the group is still listed");
        Check.equal(Map.of(), committed(group), "offsets of the deleted group");
        Check.fails(GroupIdNotFoundException.class, "deleting it again", () -> Clients.get(admin.deleteConsumerGroups(List.of(group)).all()));
    }
}
