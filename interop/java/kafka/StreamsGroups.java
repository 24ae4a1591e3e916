import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.StreamsGroupDescription;
import org.apache.kafka.clients.admin.StreamsGroupMemberAssignment.TaskIds;
import org.apache.kafka.clients.admin.StreamsGroupMemberDescription;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Runs instances of Shop, a Kafka Streams application of the streams protocol (KIP-1071), that
 * join, leave and are killed; and Kafka's tool for such groups.
 */
final class StreamsGroups {
    private static final int PARTITIONS = 3;
    private static final int ORDERS = 300;
    private static final List<String> CUSTOMERS = List.of("ann", "bob", "cid", "dan", "eve");
    /** Tasks: those of orders, of what counts them, and of what names their customers. */
    private static final int TASKS = 3 * PARTITIONS;
    private static final int STATEFUL = 2 * PARTITIONS;

    private static String bootstrap;
    private static Admin admin;

    public static void main(String[] args) throws Exception {
        Check.begin();
        bootstrap = args[0];
        admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
        Path state = Files.createTempDirectory("streams-groups");
        List<String> guarantees = args.length > 1 ? List.of(args[1]) : List.of("at_least_once", "exactly_once_v2");
        try {
            for (String guarantee : guarantees) {
                new StreamsGroups(guarantee, state).run();
            }
        } catch (Throwable t) {
            Check.run("set up", () -> {
                throw t;
            });
        } finally {
            remove(state);
        }
        Check.end();
    }

    private final String guarantee;
    private final String app;
    private final Path state;
    private final Map<String, Jvm> instances = new TreeMap<>();
    private int written;
    /** What is read of each topic of results: the values of each key, in order. */
    private final Map<String, Map<String, List<String>>> results = new HashMap<>();

    private StreamsGroups(String guarantee, Path state) {
        this.guarantee = guarantee;
        this.state = state;
        app = "shop-" + guarantee.replace('_', '-');
    }

    private void run() throws Exception {
        prepare();
        try (KafkaConsumer<String, String> c = reader()) {
            check("an application starts", () -> {
                start("a");
                order();
                Check.until("all orders done", () -> isDone(c));
                internalTopics();
            });
            check("a second instance takes tasks and standbys", () -> {
                start("b");
                Check.until("tasks in both", () -> settled(2, STATEFUL));
                order();
                Check.until("all orders done", () -> isDone(c));
            });
            check("instances know where to query", () -> Check.until("two hosts", () -> hosts("a").equals("RUNNING a b") && hosts("b").equals("RUNNING a b")));
            check("an instance is killed", () -> {
                order();
                instances.remove("a").close();
                order();
                Check.until("all orders done", () -> isDone(c));
                Check.until("tasks in the other", () -> settled(1, 0));
            });
            check("an instance joins without state and the other leaves", () -> {
                start("c");
                order();
                Check.until("tasks in both", () -> settled(2, STATEFUL));
                order();
                instances.remove("b").stop();
                order();
                Check.until("all orders done", () -> isDone(c));
            });
            check("results are right", () -> exact(c));
            check("kafka-streams-groups", () -> tool(c));
        } finally {
            for (var e : instances.entrySet()) {
                Check.explain("Instance " + e.getKey() + " printed:\n" + e.getValue().output());
                e.getValue().close();
            }
        }
    }

    private void check(String name, Check.Body body) {
        Check.run("streams group, " + guarantee + ": " + name, body);
    }

    private void prepare() throws Exception {
        List<NewTopic> topics = new ArrayList<>();
        for (String name : List.of(Shop.ORDERS, Shop.CUSTOMERS, Shop.COPIES, Shop.COUNTS, Shop.NAMED, Shop.PRICED)) {
            topics.add(new NewTopic(app + name, PARTITIONS, (short) 1));
        }
        topics.add(new NewTopic(app + Shop.ITEMS, 1, (short) 1));
        admin.createTopics(topics).all().get();
        var op = new AlterConfigOp(new ConfigEntry("streams.num.standby.replicas", "1"), AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.GROUP, app), List.of(op))).all().get();
        try (KafkaProducer<String, String> p = producer()) {
            for (String c : CUSTOMERS) {
                p.send(new ProducerRecord<>(app + Shop.CUSTOMERS, c, c.toUpperCase(Locale.ROOT)));
            }
            for (int i = 0; i < 10; i++) {
                p.send(new ProducerRecord<>(app + Shop.ITEMS, "item" + i, "$" + i));
            }
        }
    }

    private static KafkaProducer<String, String> producer() {
        return new KafkaProducer<>(Map.of("bootstrap.servers", bootstrap, "linger.ms", 1), new StringSerializer(), new StringSerializer());
    }

    private KafkaConsumer<String, String> reader() {
        var c = new KafkaConsumer<>(Map.of("bootstrap.servers", bootstrap, "auto.offset.reset", "earliest", "isolation.level", "read_committed"),
            new StringDeserializer(), new StringDeserializer());
        List<TopicPartition> all = new ArrayList<>();
        for (String name : List.of(Shop.COPIES, Shop.COUNTS, Shop.NAMED, Shop.PRICED)) {
            results.put(app + name, new TreeMap<>());
            for (int p = 0; p < PARTITIONS; p++) {
                all.add(new TopicPartition(app + name, p));
            }
        }
        c.assign(all);
        return c;
    }

    private void start(String name) throws IOException {
        instances.put(name, new Jvm("Shop", bootstrap, state.resolve(app + "-" + name).toString(), app, guarantee, name + ":80"));
    }

    /** Writes more orders, as many of each customer. */
    private void order() {
        try (KafkaProducer<String, String> p = producer()) {
            for (int end = written + ORDERS; written < end; written++) {
                p.send(new ProducerRecord<>(app + Shop.ORDERS, "o" + written, value(written)));
            }
        }
    }

    private static String customer(int n) {
        return CUSTOMERS.get(n % CUSTOMERS.size());
    }

    private static String value(int n) {
        return customer(n) + " item" + n % 7;
    }

    private Map<String, List<String>> of(String topic) {
        return results.get(app + topic);
    }

    /** Reads what came since the last time, and says whether there is something of each order in each topic. */
    private boolean isDone(KafkaConsumer<String, String> c) {
        c.poll(Duration.ofMillis(100)).forEach(r -> results.get(r.topic()).computeIfAbsent(r.key(), k -> new ArrayList<>()).add(r.value()));
        long named = of(Shop.NAMED).values().stream().mapToLong(l -> l.stream().distinct().count()).sum();
        boolean counted = CUSTOMERS.stream().allMatch(w -> of(Shop.COUNTS).getOrDefault(w, List.of()).stream().anyMatch(n -> Long.parseLong(n) >= written / CUSTOMERS.size()));
        return of(Shop.COPIES).size() == written && of(Shop.PRICED).size() == written && named == written && counted;
    }

    /** The results of each order are right, and, exactly once, there is one of each. */
    private void exact(KafkaConsumer<String, String> c) {
        isDone(c);
        boolean once = guarantee.equals("exactly_once_v2");
        Map<String, List<String>> named = new TreeMap<>();
        for (int i = 0; i < written; i++) {
            same(List.of(value(i).toUpperCase(Locale.ROOT)), of(Shop.COPIES).get("o" + i), once, "the copy of order " + i);
            same(List.of("$" + i % 7), of(Shop.PRICED).get("o" + i), once, "the price of order " + i);
            named.computeIfAbsent(customer(i), k -> new ArrayList<>()).add("o" + i + " " + customer(i).toUpperCase(Locale.ROOT));
        }
        for (String w : CUSTOMERS) {
            same(named.get(w).stream().sorted().toList(), of(Shop.NAMED).get(w).stream().sorted().toList(), once, "the named orders of " + w);
            if (once) {
                Check.equal(LongStream.rangeClosed(1, written / CUSTOMERS.size()).mapToObj(Long::toString).toList(), of(Shop.COUNTS).get(w), "the counts of " + w);
            }
        }
    }

    private static void same(List<String> want, List<String> got, boolean once, String what) {
        Check.equal(want, once ? got : got.stream().distinct().toList(), what);
    }

    private void internalTopics() throws Exception {
        TreeSet<String> names = new TreeSet<>(admin.listTopics().names().get());
        names.removeIf(n -> !n.startsWith(app + "-") || !n.endsWith("-repartition") && !n.endsWith("-changelog"));
        Check.equal(4, names.size(), "internal topics, which are " + names);
        for (var e : admin.describeTopics(names).allTopicNames().get().entrySet()) {
            Check.equal(PARTITIONS, e.getValue().partitions().size(), "partitions of " + e.getKey());
            ConfigResource r = new ConfigResource(ConfigResource.Type.TOPIC, e.getKey());
            String policy = admin.describeConfigs(List.of(r)).all().get().get(r).get("cleanup.policy").value();
            Check.equal(e.getKey().endsWith("-changelog") ? "compact" : "delete", policy, "cleanup.policy of " + e.getKey());
        }
    }

    private StreamsGroupDescription describe() throws Exception {
        return admin.describeStreamsGroups(List.of(app)).all().get().get(app);
    }

    private static int count(List<TaskIds> tasks) {
        return tasks.stream().mapToInt(t -> t.partitions().size()).sum();
    }

    /** Whether so many processes have all tasks, none of them without, and there are so many standbys. */
    private boolean settled(int processes, int standbys) throws Exception {
        StreamsGroupDescription g = describe();
        Map<String, Integer> active = new TreeMap<>();
        int copies = 0;
        for (StreamsGroupMemberDescription m : g.members()) {
            active.merge(m.processId(), count(m.assignment().activeTasks()), Integer::sum);
            copies += count(m.assignment().standbyTasks());
        }
        int tasks = active.values().stream().mapToInt(n -> n).sum();
        return g.groupState() == GroupState.STABLE && active.size() == processes && !active.containsValue(0) && tasks == TASKS && copies == standbys;
    }

    private String hosts(String instance) throws IOException {
        Path file = state.resolve(app + "-" + instance).resolve("hosts");
        return Files.exists(file) ? Files.readString(file) : "";
    }

    private void tool(KafkaConsumer<String, String> c) throws Exception {
        Tool.bootstrap = bootstrap;
        Tool.capture();
        Tool tool = new Tool("org.apache.kafka.tools.streams.StreamsGroupCommand");
        Tools.prints("^" + app + "$", tool.run("--list"));
        Tools.prints(app + " Stable", tool.run("--list", "--state"));
        Tools.prints("^" + app + " Streams streams", new Tool("org.apache.kafka.tools.GroupsCommand").run("--list", "--streams"));
        Tools.prints(app + " 127.0.0.1:\\d+ \\(1\\) Stable 2", tool.run("--describe", "--state", "--group", app));
        Tools.prints("ACTIVE: 0:\\[\\d.*; 1:\\[\\d.*", tool.run("--describe", "--members", "--group", app));
        Tools.prints(app + " " + app + Shop.ORDERS + " 0 \\d+", tool.run("--describe", "--group", app));
        instances.remove("c").stop();
        Check.until("the group is empty", () -> describe().groupState() == GroupState.EMPTY);
        Tools.prints(app + Shop.ORDERS + " \\d 0", tool.run("--reset-offsets", "--group", app, "--all-input-topics", "--to-earliest", "--execute"));
        Tools.prints("successful", tool.run("--delete", "--group", app, "--delete-all-internal-topics"));
        Tools.printsNot("^" + app + "$", tool.run("--list"));
    }

    private static void remove(Path folder) throws Exception {
        try (Stream<Path> files = Files.walk(folder)) {
            for (Path f : files.sorted(java.util.Comparator.reverseOrder()).toList()) {
                Files.delete(f);
            }
        }
    }
}
