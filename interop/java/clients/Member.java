import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.function.BiConsumer;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;

/** A consumer in a group, with a thread of its own. */
final class Member implements ConsumerRebalanceListener, AutoCloseable {
    /** Is how a member subscribes that does not name topics, and has no pattern of its own. */
    interface Subscription extends BiConsumer<KafkaConsumer<String, String>, ConsumerRebalanceListener> {}

    private final Book book;
    private final String name;
    private final KafkaConsumer<String, String> consumer;
    private final Thread thread;
    private final List<String> read = new ArrayList<>();
    private final List<String> history = new ArrayList<>();
    private int assignments;
    private int revocations;
    private int revoked;
    private ConsumerGroupMetadata metadata;
    private Throwable error;
    private volatile boolean ending;
    private volatile boolean vanishing;
    private volatile CountDownLatch stalled;
    private volatile Runnable task;

    Member(String group, Object topics, Object... settings) {
        this(new Book(), group, topics, settings);
    }

    /** A member whose group has a book. Topics are a name, a list of names, a pattern, or a Subscription. */
    Member(Book book, String group, Object topics, Object... settings) {
        this.book = book;
        Map<String, Object> config = Clients.config(
            "group.id", group, "enable.auto.commit", "true", "auto.commit.interval.ms", 100, "auto.offset.reset", "earliest",
            "fetch.max.wait.ms", 100, "metadata.max.age.ms", 1000);
        config.putAll(Clients.config(settings));
        if (!config.containsKey("group.protocol")) {
            config.put("heartbeat.interval.ms", 200); // With the other protocol it is the broker that says.
        }
        name = "member " + config.get("client.id");
        consumer = new KafkaConsumer<>(config, new org.apache.kafka.common.serialization.StringDeserializer(),
            new org.apache.kafka.common.serialization.StringDeserializer());
        if (topics instanceof Subscription) {
            ((Subscription) topics).accept(consumer, this);
        } else if (topics instanceof Pattern) {
            consumer.subscribe((Pattern) topics, this);
        } else if (topics instanceof List) {
            List<String> names = new ArrayList<>();
            ((List<?>) topics).forEach(t -> names.add((String) t));
            consumer.subscribe(names, this);
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
                    var records = consumer.poll(Duration.ofMillis(100));
                    synchronized (this) {
                        records.forEach(r -> {
                            read.add(r.value());
                            book.read(new TopicPartition(r.topic(), r.partition()), r.offset());
                        });
                        metadata = consumer.groupMetadata();
                    }
                } catch (WakeupException e) {
                    // There is a task, or this is the end.
                }
                Runnable t = task;
                if (t != null) {
                    task = null;
                    t.run();
                }
            }
        } catch (Throwable t) {
            synchronized (this) {
                error = t;
            }
        } finally {
            end();
        }
    }

    private void end() {
        if (vanishing) {
            try {
                closeWithoutLeaving();
                return;
            } catch (ReflectiveOperationException e) {
                // Before KIP-1092 there was only the setting.
            }
        }
        consumer.close(Duration.ofSeconds(10));
    }

    private void closeWithoutLeaving() throws ReflectiveOperationException {
        Class<?> options = Class.forName("org.apache.kafka.clients.consumer.CloseOptions");
        Class<?> operation = Class.forName("org.apache.kafka.clients.consumer.CloseOptions$GroupMembershipOperation");
        Object remain = operation.getField("REMAIN_IN_GROUP").get(null);
        consumer.getClass().getMethod("close", options).invoke(consumer, options.getMethod("groupMembershipOperation", operation).invoke(null, remain));
    }

    /** Has the thread do something with the consumer. */
    void run(java.util.function.Consumer<KafkaConsumer<String, String>> what) {
        task = () -> what.accept(consumer);
        consumer.wakeup();
    }

    @Override
    public synchronized void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        assignments++;
        metadata = consumer.groupMetadata();
        note("+", partitions);
        book.take(this, partitions);
    }

    @Override
    public synchronized void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        revocations++;
        revoked += partitions.size();
        note("-", partitions);
        book.drop(this, partitions);
    }

    private void note(String what, Collection<TopicPartition> partitions) {
        Set<Integer> numbers = new TreeSet<>();
        partitions.forEach(p -> numbers.add(p.partition()));
        history.add(System.currentTimeMillis() % 100_000 + " generation " + consumer.groupMetadata().generationId() + ": " + what + numbers);
    }

    /** Which partitions came and went, and when. */
    synchronized String history() {
        return name + " " + history;
    }

    Set<Integer> owned() {
        Set<Integer> owned = new TreeSet<>();
        book.of(this).forEach(p -> owned.add(p.partition()));
        return owned;
    }

    synchronized Set<String> read() {
        return new HashSet<>(read);
    }

    /** How many records were read, those read twice counted twice. */
    synchronized int reads() {
        return read.size();
    }

    synchronized int assignments() {
        return assignments;
    }

    /** How often partitions came or went. */
    synchronized int changes() {
        return assignments + revocations;
    }

    /** How many partitions were taken away so far. */
    synchronized int revoked() {
        return revoked;
    }

    synchronized int generation() {
        return metadata == null ? -1 : metadata.generationId();
    }

    synchronized String memberId() {
        return metadata == null ? "" : metadata.memberId();
    }

    synchronized Throwable error() {
        return error;
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

    /** Ends without leaving the group, if internal.leave.group.on.close is false where that is a setting. */
    void vanish() {
        vanishing = true;
        book.dropAll(this);
        close();
    }

    /** Closes the consumer, which leaves the group if its settings say so. */
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

    @Override
    public String toString() {
        return name;
    }
}
