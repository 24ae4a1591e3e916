import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.stream.IntStream;

/**
 * Kafka Connect in distributed mode, against the broker that the first argument
 * names: two workers take lines from a file to a topic and from there to another
 * file, and one of them is stopped. Then workers of another group take lines to a
 * topic exactly once.
 */
final class Connect {
    private static final ObjectMapper json = new ObjectMapper();
    private static final HttpClient http = HttpClient.newHttpClient();

    private Connect() {}

    private static String bootstrap;
    private static Path folder;
    /** The workers that run, by address. */
    private static final Map<String, Jvm> workers = new HashMap<>();

    public static void main(String[] args) throws Exception {
        Check.begin();
        bootstrap = args[0];
        folder = Files.createTempDirectory("connect");
        try {
            Check.run("workers: two form a group", Connect::start);
            Check.run("connectors: from a file to a topic to a file", Connect::flow);
            Check.run("connectors: pause and resume", Connect::pause);
            Check.run("workers: one is stopped, the other takes over", Connect::takeOver);
            Check.run("connectors: offsets shown and reset", Connect::reset);
            Check.run("connectors: delete", Connect::delete);
            end();
            Check.run("exactly once: a worker is killed, another takes over, each line comes once", () -> ConnectOnce.run(bootstrap, folder));
        } finally {
            end();
            for (String f : List.of("in", "out", "worker-1", "worker-2", "worker-3", "worker-4")) {
                Files.deleteIfExists(folder.resolve(f));
            }
            Files.delete(folder);
        }
        Check.end();
    }

    /** Ends the workers that are left. */
    private static void end() throws Exception {
        for (Jvm w : workers.values()) {
            Check.explain("A worker printed:\n" + w.output());
            w.close();
        }
        workers.clear();
    }

    private static void start() throws Exception {
        for (int i = 1; i <= 2; i++) {
            worker(i, "connect");
        }
        answer();
    }

    /** Starts a worker of a group and returns its address. */
    static String worker(int number, String group, String... settings) throws Exception {
        String address = "127.0.0.1:" + freePort();
        List<String> all = new ArrayList<>(List.of(
            "bootstrap.servers=" + bootstrap, "group.id=" + group, "listeners=http://" + address,
            "key.converter=org.apache.kafka.connect.storage.StringConverter", "value.converter=org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable=false",
            "config.storage.topic=" + group + "-configs", "config.storage.replication.factor=1",
            "offset.storage.topic=" + group + "-offsets", "offset.storage.replication.factor=1", "offset.storage.partitions=3",
            "status.storage.topic=" + group + "-status", "status.storage.replication.factor=1", "status.storage.partitions=2",
            "offset.flush.interval.ms=500", "scheduled.rebalance.max.delay.ms=0", "heartbeat.interval.ms=500",
            "consumer.heartbeat.interval.ms=500", "consumer.metadata.max.age.ms=1000", "plugin.discovery=service_load"));
        all.addAll(List.of(settings));
        Path file = folder.resolve("worker-" + number);
        Files.write(file, all);
        workers.put(address, new Jvm("org.apache.kafka.connect.cli.ConnectDistributed", file.toString()));
        return address;
    }

    /** Waits until the workers answer. */
    static void answer() throws Exception {
        for (String w : workers.keySet()) {
            Check.until("worker " + w + " answers", () -> {
                try {
                    return !call(w, "GET", "/", null).path("kafka_cluster_id").asText().isEmpty();
                } catch (IOException e) {
                    return false; // It does not listen yet.
                }
            });
        }
    }

    private static int freePort() throws IOException {
        try (ServerSocket s = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
            return s.getLocalPort();
        }
    }

    /** Calls the REST API of a worker. What is being rebalanced is asked for again. */
    private static JsonNode call(String worker, String method, String path, Object body) throws Exception {
        var publisher = body == null ? BodyPublishers.noBody() : BodyPublishers.ofString(json.writeValueAsString(body));
        HttpRequest request = HttpRequest.newBuilder(URI.create("http://" + worker + path))
            .header("Content-Type", "application/json").method(method, publisher).build();
        List<HttpResponse<String>> answer = new ArrayList<>();
        Check.until(method + " " + path + " without a conflict", () -> {
            answer.add(0, http.send(request, HttpResponse.BodyHandlers.ofString()));
            return answer.get(0).statusCode() != 409;
        });
        int status = answer.get(0).statusCode();
        String text = answer.get(0).body();
        Check.that(status < 300 || status == 404, method + " " + path + " was answered with " + status + ": " + text);
        return text.isEmpty() ? json.nullNode() : json.readTree(text);
    }

    static JsonNode call(String method, String path, Object body) throws Exception {
        return call(workers.keySet().iterator().next(), method, path, body);
    }

    /** Adds lines with numbers to the file that is read. */
    private static void write(int from, int next) throws IOException {
        List<String> lines = IntStream.range(from, next).mapToObj(i -> "line " + i).toList();
        Files.write(folder.resolve("in"), lines, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }

    /** Waits until the other file has all of the lines up to a number. Some may have come twice. */
    private static void arrived(int next) throws Exception {
        TreeSet<String> want = new TreeSet<>(IntStream.range(0, next).mapToObj(i -> "line " + i).toList());
        Check.until(next + " lines in the file", () -> Files.exists(folder.resolve("out"))
            && want.equals(new TreeSet<>(Files.readAllLines(folder.resolve("out")))));
    }

    /** Kills a worker. */
    static void kill(String worker) throws Exception {
        workers.remove(worker).close();
    }

    /** Waits until a connector and its one task are in a state, and returns the worker of the task. */
    static String state(String connector, String state) throws Exception {
        List<String> worker = new ArrayList<>();
        Check.until(connector + " is " + state, () -> {
            JsonNode status = call("GET", "/connectors/" + connector + "/status", null);
            JsonNode task = status.path("tasks").path(0);
            worker.add(0, task.path("worker_id").asText());
            return status.path("connector").path("state").asText().equals(state) && task.path("state").asText().equals(state)
                && workers.containsKey(worker.get(0)) && workers.containsKey(status.path("connector").path("worker_id").asText());
        });
        return worker.get(0);
    }

    private static void flow() throws Exception {
        write(0, 100);
        call("PUT", "/connectors/source/config", Map.of("connector.class", "FileStreamSource", "tasks.max", "1",
            "file", folder.resolve("in").toString(), "topic", "connect-lines"));
        call("PUT", "/connectors/sink/config", Map.of("connector.class", "FileStreamSink", "tasks.max", "1",
            "file", folder.resolve("out").toString(), "topics", "connect-lines"));
        arrived(100);
        state("source", "RUNNING");
        state("sink", "RUNNING");
    }

    private static void pause() throws Exception {
        call("PUT", "/connectors/source/pause", null);
        state("source", "PAUSED");
        write(100, 110);
        call("PUT", "/connectors/source/resume", null);
        state("source", "RUNNING");
        arrived(110);
    }

    private static void takeOver() throws Exception {
        String stopped = state("source", "RUNNING");
        try (Jvm w = workers.remove(stopped)) {
            // A worker seldom hangs at its end, when Jetty's shutdown hook and Connect's own stop the REST server at the
            // same time. The other one takes over either way.
            w.stopOrKill(15);
        }
        String other = workers.keySet().iterator().next();
        Check.equal(other, state("source", "RUNNING"), "the worker of the source");
        Check.equal(other, state("sink", "RUNNING"), "the worker of the sink");
        write(110, 200);
        arrived(200);
    }

    private static void reset() throws Exception {
        Check.until("the offset of all lines shown", () -> {
            JsonNode offsets = call("GET", "/connectors/source/offsets", null).path("offsets");
            return offsets.path(0).path("offset").path("position").asLong() == Files.size(folder.resolve("in"));
        });
        call("PUT", "/connectors/sink/stop", null);
        Check.until("the sink is stopped", () -> {
            JsonNode status = call("GET", "/connectors/sink/status", null);
            return status.path("connector").path("state").asText().equals("STOPPED") && status.path("tasks").isEmpty();
        });
        call("DELETE", "/connectors/sink/offsets", null);
        Files.delete(folder.resolve("out"));
        call("PUT", "/connectors/sink/resume", null);
        arrived(200);
    }

    private static void delete() throws Exception {
        call("DELETE", "/connectors/source", null);
        call("DELETE", "/connectors/sink", null);
        Check.until("no connectors", () -> call("GET", "/connectors", null).isEmpty());
    }
}
