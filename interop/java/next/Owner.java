import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.StringDeserializer;

/** A member of a consumer group (KIP-848), with a thread of its own. */
final class Owner implements ConsumerRebalanceListener, AutoCloseable {
    /** What the members of a group have, as they see it, and what they have read. */
    static final class Book {
        private final Map<TopicPartition, Owner> owners = new HashMap<>();
        private final Map<TopicPartition, Set<Long>> read = new HashMap<>();
        private final List<String> wrong = new ArrayList<>();

        private synchronized void take(Owner who, Collection<TopicPartition> partitions) {
            for (TopicPartition p : partitions) {
                Owner other = owners.put(p, who);
                if (other != null && other != who) {
                    wrong.add(p + " came to " + who.name + " while " + other.name + " had it");
                }
            }
        }

        private synchronized void drop(Owner who, Collection<TopicPartition> partitions) {
            partitions.forEach(p -> owners.remove(p, who));
        }

        /** Is for one that is about to be missed: others may have what it has before it knows. */
        private synchronized void dropAll(Owner who) {
            owners.values().removeIf(o -> o == who);
        }

        private synchronized void read(TopicPartition p, long offset) {
            read.computeIfAbsent(p, k -> new HashSet<>()).add(offset);
        }

        synchronized int reads() {
            return read.values().stream().mapToInt(Set::size).sum();
        }

        synchronized boolean has(TopicPartition p, long offset) {
            return read.getOrDefault(p, Set.of()).contains(offset);
        }

        synchronized void forget(String topic) {
            read.keySet().removeIf(p -> p.topic().equals(topic));
        }

        synchronized Set<TopicPartition> of(Owner who) {
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

    private final String name;
    private final Book book;
    private final KafkaConsumer<String, String> consumer;
    private final Thread thread;
    private int changes;
    private int epoch = -1;
    private Throwable error;
    private volatile CountDownLatch stalled;
    private volatile boolean ending;
    private volatile boolean crashing;

    Owner(String name, Book book, String group, Object topics, Object... settings) {
        this.name = name;
        this.book = book;
        Map<String, Object> config = Clients.config(
            "group.protocol", "consumer", "group.id", group, "client.id", name, "auto.offset.reset", "earliest",
            "enable.auto.commit", "true", "auto.commit.interval.ms", 100, "fetch.max.wait.ms", 100, "metadata.max.age.ms", 1000,
            "allow.auto.create.topics", "false");
        config.putAll(Clients.config(settings));
        consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
        if (topics instanceof SubscriptionPattern) {
            consumer.subscribe((SubscriptionPattern) topics, this);
        } else if (topics instanceof List) {
            consumer.subscribe(((List<?>) topics).stream().map(String.class::cast).toList(), this);
        } else {
            consumer.subscribe(List.of((String) topics), this);
        }
        thread = new Thread(this::poll);
        thread.setDaemon(true);
        thread.start();
    }

    private void poll() {
        try {
            while (!ending) {
                CountDownLatch until = stalled;
                if (until != null) {
                    until.await();
                }
                try {
                    consumer.poll(Duration.ofMillis(100)).forEach(r -> book.read(new TopicPartition(r.topic(), r.partition()), r.offset()));
                    synchronized (this) {
                        epoch = consumer.groupMetadata().generationId();
                    }
                } catch (WakeupException e) {
                    // This is the end.
                }
            }
        } catch (Throwable t) {
            synchronized (this) {
                error = t;
            }
        }
        if (crashing) {
            consumer.close(CloseOptions.groupMembershipOperation(CloseOptions.GroupMembershipOperation.REMAIN_IN_GROUP));
        } else {
            consumer.close(CloseOptions.timeout(Duration.ofSeconds(10)));
        }
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        book.take(this, partitions);
        change();
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        book.drop(this, partitions);
        change();
    }

    private synchronized void change() {
        changes++;
    }

    /** How often partitions came or went. */
    synchronized int changes() {
        return changes;
    }

    synchronized int epoch() {
        if (error != null) {
            throw new IllegalStateException("member " + name + " failed", error);
        }
        return epoch;
    }

    Set<TopicPartition> owned() {
        return book.of(this);
    }

    /** Has it poll no more. Its heartbeats go on until max.poll.interval.ms is over, and then it leaves. */
    void stall() {
        book.dropAll(this);
        stalled = new CountDownLatch(1);
    }

    void resume() {
        CountDownLatch until = stalled;
        stalled = null;
        until.countDown();
    }

    /** Ends it without a word to the coordinator. */
    void crash() {
        crashing = true;
        book.dropAll(this);
        close();
    }

    @Override
    public void close() {
        ending = true;
        consumer.wakeup();
        try {
            thread.join(15_000);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
