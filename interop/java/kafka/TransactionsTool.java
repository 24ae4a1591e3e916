import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.StringSerializer;

/** kafka-transactions, with all its commands. */
final class TransactionsTool {
    private static final Tool tool = new Tool("org.apache.kafka.tools.TransactionsCommand", true);
    private static final String TOPIC = "tools-transactions";
    private static final String ID = "tools-transactional-id";

    private TransactionsTool() {}

    static void run() throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", Tool.bootstrap))) {
            admin.createTopics(List.of(new NewTopic(TOPIC, 2, (short) 1))).all().get(30, TimeUnit.SECONDS);
        }
        KafkaProducer<String, String> open = producer();
        try {
            Check.run("kafka-transactions: list", TransactionsTool::list);
            Check.run("kafka-transactions: describe", () -> Tools.prints(
                "^\\d+ " + ID + " \\d+ \\d+ Ongoing 60000 \\S+ \\d+ (" + TOPIC + "-\\d,?){2} ?$", tool.run("describe", "--transactional-id", ID)));
            Check.run("kafka-transactions: describe-producers", () -> Tools.prints(
                "^\\d+ \\d+ -?\\d+ 0 \\d+ \\d+ ?$", tool.run("describe-producers", "--topic", TOPIC, "--partition", "0")));
            Check.run("kafka-transactions: find-hanging", TransactionsTool::findHanging);
            Check.run("kafka-transactions: abort", TransactionsTool::abort);
            Check.run("kafka-transactions: forceTerminateTransaction", () -> terminate(open));
        } finally {
            open.close(Duration.ZERO);
        }
    }

    /** A producer that has a transaction open, with a record of an hour ago in each partition. */
    private static KafkaProducer<String, String> producer() throws Exception {
        KafkaProducer<String, String> p = new KafkaProducer<>(Map.of("bootstrap.servers", Tool.bootstrap, "transactional.id", ID),
            new StringSerializer(), new StringSerializer());
        p.initTransactions();
        p.beginTransaction();
        for (int i = 0; i < 2; i++) {
            p.send(new ProducerRecord<>(TOPIC, i, System.currentTimeMillis() - 3_600_000, "k", "v")).get(30, TimeUnit.SECONDS);
        }
        return p;
    }

    private static void list() throws Exception {
        String line = "^" + ID + " \\d+ \\d+ Ongoing ?$";
        Tools.prints(line, tool.run("list"));
        Tools.prints(line, tool.run("list", "--transactional-id-pattern", "tools-.*"));
        Tools.printsNot(ID, tool.run("list", "--transactional-id-pattern", "others-.*"));
        Tools.printsNot(ID, tool.run("list", "--duration-filter", "600000"));
    }

    /** Transactions are old enough to be looked at, but hang only if their coordinator does not know them. */
    private static void findHanging() throws Exception {
        String header = "^Topic Partition ProducerId ProducerEpoch CoordinatorEpoch StartOffset LastTimestamp Duration\\(min\\) ?$";
        for (String[] where : new String[][] {{"--topic", TOPIC}, {"--topic", TOPIC, "--partition", "1"}, {"--broker-id", broker()}}) {
            String[] all = new String[where.length + 1];
            all[0] = "find-hanging";
            System.arraycopy(where, 0, all, 1, where.length);
            String printed = tool.run(all);
            Tools.prints(header, printed);
            Tools.printsNot(TOPIC, printed);
        }
    }

    private static String broker() throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", Tool.bootstrap))) {
            return admin.describeCluster().controller().get(30, TimeUnit.SECONDS).idString();
        }
    }

    private static void abort() throws Exception {
        String before = tool.run("describe-producers", "--topic", TOPIC, "--partition", "1");
        String start = before.strip().lines().skip(1).findFirst().orElse("").strip().replaceAll(".*\\s", "");
        tool.run("abort", "--topic", TOPIC, "--partition", "1", "--start-offset", start);
        Tools.prints(" None ?$", tool.run("describe-producers", "--topic", TOPIC, "--partition", "1"));
        Tools.printsNot(" None ?$", tool.run("describe-producers", "--topic", TOPIC, "--partition", "0"));
    }

    private static void terminate(KafkaProducer<String, String> open) throws Exception {
        tool.run("forceTerminateTransaction", "--transactionalId", ID);
        Check.fails(ProducerFencedException.class, "a commit after that", open::commitTransaction);
        Check.until("the transaction is aborted", () -> Tools.matches(ID + " \\d+ \\d+ (Empty|CompleteAbort) ", tool.run("describe", "--transactional-id", ID)) > 0);
        Tools.prints(" None ?$", tool.run("describe-producers", "--topic", TOPIC, "--partition", "0"));
    }
}
