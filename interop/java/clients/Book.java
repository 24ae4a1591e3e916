import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.TopicPartition;

/** What the members of a group have, as they see it, and what they have read. */
final class Book {
    private final Map<TopicPartition, Member> owners = new HashMap<>();
    private final Map<TopicPartition, Set<Long>> read = new HashMap<>();
    private final List<String> wrong = new ArrayList<>();

    synchronized void take(Member who, Collection<TopicPartition> partitions) {
        for (TopicPartition p : partitions) {
            Member other = owners.put(p, who);
            if (other != null && other != who) {
                wrong.add(p + " came to " + who + " while " + other + " had it");
            }
        }
    }

    synchronized void drop(Member who, Collection<TopicPartition> partitions) {
        partitions.forEach(p -> owners.remove(p, who));
    }

    /** Is for one that is about to be missed: others may have what it has before it knows. */
    synchronized void dropAll(Member who) {
        owners.values().removeIf(o -> o == who);
    }

    synchronized void read(TopicPartition p, long offset) {
        read.computeIfAbsent(p, k -> new HashSet<>()).add(offset);
    }

    synchronized boolean has(TopicPartition p, long offset) {
        return read.getOrDefault(p, Set.of()).contains(offset);
    }

    synchronized void forget(String topic) {
        read.keySet().removeIf(p -> p.topic().equals(topic));
    }

    synchronized Set<TopicPartition> of(Member who) {
        Set<TopicPartition> all = new HashSet<>();
        owners.forEach((p, o) -> {
            if (o == who) {
                all.add(p);
            }
        });
        return all;
    }

    synchronized void check() {
        Check.equal(List.of(), wrong, "partitions with two owners");
    }
}
