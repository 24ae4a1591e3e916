import java.time.Duration;
import java.util.List;
import java.util.Set;
import org.apache.kafka.clients.admin.AbortTransactionSpec;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListTransactionsOptions;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.TransactionalIdNotFoundException;

/** The Admin client over transactions. */
final class AdminOfTransactions {
    private static final int PARTITIONS = 3;

    private AdminOfTransactions() {}

    private static final Admin admin = Clients.admin;

    static void run() throws Exception {
        String topic = Clients.topic("admin-txn", PARTITIONS);
        KafkaProducer<String, String> p = Transactions.producer(topic);
        try {
            p.beginTransaction();
            List<RecordMetadata> sent = Transactions.send(p, topic, 0, PARTITIONS);
            Check.run("admin: list transactions", () -> list(topic));
            Check.run("admin: describe transactions", () -> describe(topic));
            Check.run("admin: producers in a transaction", () -> producers(topic, sent));
            Check.run("admin: fence producers", () -> fence(topic, p));
        } finally {
            p.close(Duration.ZERO);
        }
        Check.run("admin: abort a transaction", AdminOfTransactions::abort);
    }

    /** Whether a transactional id is listed. */
    private static boolean listed(String id, ListTransactionsOptions options) throws Exception {
        return Clients.get(admin.listTransactions(options).all()).stream().anyMatch(t -> t.transactionalId().equals(id));
    }

    private static TransactionDescription described(String id) throws Exception {
        return Clients.get(admin.describeTransactions(List.of(id)).all()).get(id);
    }

    private static void list(String id) throws Exception {
        var one = Clients.get(admin.listTransactions().all()).stream().filter(t -> t.transactionalId().equals(id)).toList();
        Check.that(one.size() == 1 && one.get(0).state() == TransactionState.ONGOING, "the transaction is listed as " + one);
        long producer = one.get(0).producerId();
        Check.equal(described(id).producerId(), producer, "the producer id");
        Check.that(listed(id, new ListTransactionsOptions().filterStates(Set.of(TransactionState.ONGOING))), "not listed as ongoing");
        Check.that(!listed(id, new ListTransactionsOptions().filterStates(Set.of(TransactionState.EMPTY))), "listed as empty");
        Check.that(listed(id, new ListTransactionsOptions().filterProducerIds(Set.of(producer))), "not listed by its producer id");
        Check.that(!listed(id, new ListTransactionsOptions().filterProducerIds(Set.of(producer + 1))), "listed by another producer id");
        Check.that(!listed(id, new ListTransactionsOptions().filterOnDuration(600_000)), "listed as older than ten minutes");
        Check.until("listed as older than 1 ms", () -> listed(id, new ListTransactionsOptions().filterOnDuration(1)));
    }

    private static void describe(String id) throws Exception {
        TransactionDescription d = described(id);
        Check.equal(TransactionState.ONGOING, d.state(), "the state");
        Check.equal(60_000L, d.transactionTimeoutMs(), "the timeout");
        Check.equal(Set.copyOf(Clients.partitions(id, PARTITIONS)), d.topicPartitions(), "the partitions");
        long age = System.currentTimeMillis() - d.transactionStartTimeMs().orElse(0);
        Check.that(age > -1000 && age < 60_000, "the transaction began " + age + " ms ago");
        Check.that(d.coordinatorId() >= 0 && d.producerEpoch() >= 0, "the description is " + d);
        Check.fails(TransactionalIdNotFoundException.class, "describing an id that is not there", () -> described(id + "-none"));
    }

    private static ProducerState producer(TopicPartition p) throws Exception {
        List<ProducerState> active = Clients.get(admin.describeProducers(List.of(p)).partitionResult(p)).activeProducers();
        Check.equal(1, active.size(), "producers of " + p);
        return active.get(0);
    }

    private static void producers(String topic, List<RecordMetadata> sent) throws Exception {
        for (RecordMetadata m : sent) {
            ProducerState s = producer(new TopicPartition(topic, m.partition()));
            Check.equal(described(topic).producerId(), s.producerId(), "the producer id");
            Check.equal(described(topic).producerEpoch(), s.producerEpoch(), "the producer epoch");
            Check.equal(m.offset(), s.currentTransactionStartOffset().orElse(-1), "where the transaction begins");
            Check.equal(0, s.lastSequence(), "the last sequence");
        }
    }

    private static void fence(String id, KafkaProducer<String, String> p) throws Exception {
        int before = described(id).producerEpoch();
        Clients.get(admin.fenceProducers(List.of(id)).all());
        Check.fails(ProducerFencedException.class, "a commit after that", p::commitTransaction);
        Check.that(described(id).producerEpoch() > before, "the epoch is not higher");
        Check.until("no partition has it open", () -> {
            for (TopicPartition t : Clients.partitions(id, PARTITIONS)) {
                if (producer(t).currentTransactionStartOffset().isPresent()) {
                    return false;
                }
            }
            return true;
        });
        Check.equal(0, Clients.read(id, PARTITIONS, "isolation.level", "read_committed").size(), "committed records");
    }

    /** Aborts in one partition, which is for transactions that no coordinator knows. */
    private static void abort() throws Exception {
        String topic = Clients.topic("admin-txn-abort", PARTITIONS);
        KafkaProducer<String, String> p = Transactions.producer(topic);
        try {
            p.beginTransaction();
            Transactions.send(p, topic, 0, 3);
            TopicPartition first = new TopicPartition(topic, 0);
            ProducerState s = producer(first);
            var spec = new AbortTransactionSpec(first, s.producerId(), (short) s.producerEpoch(), s.coordinatorEpoch().orElse(0));
            Clients.get(admin.abortTransaction(spec).all());
            Check.that(producer(first).currentTransactionStartOffset().isEmpty(), "the transaction is still open");
            Check.that(producer(new TopicPartition(topic, 1)).currentTransactionStartOffset().isPresent(), "the transaction is not open elsewhere");
        } finally {
            p.close(Duration.ZERO);
        }
    }
}
