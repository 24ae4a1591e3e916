import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.WakeupException;

/**
 * Copies records from a topic to another, a few in each transaction together with
 * the offsets that it has read up to, as a member of a group and in a thread of
 * its own. Every third transaction is aborted and done again.
 */
final class Copier implements AutoCloseable {
    private final String to;
    private final KafkaConsumer<String, String> consumer;
    private final KafkaProducer<String, String> producer;
    private final Thread thread;
    private volatile boolean ending;
    private volatile boolean joined;
    private int transactions;
    private int copied;
    private int aborted;
    private Throwable error;

    Copier(String name, String from, String to) {
        this.to = to;
        producer = Transactions.producer(from + "-" + name);
        consumer = Clients.consumer("group.id", from, "isolation.level", "read_committed", "max.poll.records", 5,
            "heartbeat.interval.ms", 200, "fetch.max.wait.ms", 100);
        consumer.subscribe(List.of(from));
        thread = new Thread(this::run);
        thread.setDaemon(true);
        thread.start();
    }

    private void run() {
        try {
            while (!ending) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(100));
                joined = !consumer.assignment().isEmpty();
                if (!records.isEmpty()) {
                    copy(records);
                }
            }
        } catch (WakeupException e) {
            // This is the end.
        } catch (Throwable t) {
            synchronized (this) {
                error = t;
            }
        } finally {
            consumer.close(Duration.ofSeconds(10));
            producer.close(Duration.ofSeconds(10));
        }
    }

    private void copy(ConsumerRecords<String, String> records) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        producer.beginTransaction();
        try {
            for (ConsumerRecord<String, String> r : records) {
                producer.send(new ProducerRecord<>(to, r.partition(), r.key(), "copy of " + r.value()));
                offsets.put(new TopicPartition(r.topic(), r.partition()), new OffsetAndMetadata(r.offset() + 1));
            }
            producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
            if (++transactions % 3 == 0) {
                producer.flush();
                back();
                return;
            }
            producer.commitTransaction();
        } catch (ProducerFencedException e) {
            throw e;
        } catch (KafkaException e) {
            back(); // The group may have another generation. What cannot be aborted fails there.
            return;
        }
        synchronized (this) {
            copied += records.count();
        }
    }

    /** Aborts, and goes back to what is committed. */
    private void back() {
        producer.abortTransaction();
        synchronized (this) {
            aborted++;
        }
        var committed = consumer.committed(consumer.assignment());
        for (TopicPartition p : consumer.assignment()) {
            if (committed.get(p) == null) {
                consumer.seekToBeginning(List.of(p));
            } else {
                consumer.seek(p, committed.get(p));
            }
        }
    }

    /** Whether it has partitions. */
    boolean joined() {
        failed();
        return joined;
    }

    /** How many records it has copied in transactions that were committed. */
    synchronized int copied() {
        failed();
        return copied;
    }

    synchronized int aborted() {
        return aborted;
    }

    private synchronized void failed() {
        if (error != null) {
            throw new IllegalStateException("a copier failed", error);
        }
    }

    @Override
    public void close() {
        ending = true;
        consumer.wakeup();
        try {
            thread.join(20_000);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
