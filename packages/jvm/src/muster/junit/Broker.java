package muster.junit;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;

/**
 * A broker in memory, on a free port of 127.0.0.1. It is a process of its own, which ends no later than this one, however
 * this one ends.
 *
 * <pre>{@code
 * try (Broker broker = Broker.start()) {
 *     String topic = broker.topic(3);
 *     properties.put("bootstrap.servers", broker.bootstrapServers());
 * }
 * }</pre>
 */
public final class Broker implements AutoCloseable {
    private static final int LOG_LINES = 10_000; // How much of a broker's log is kept.
    private static final long STOP_SECONDS = 30;
    private static final Map<Options, Broker> SHARED = new TreeMap<>();

    private final Process process;
    private final Thread reader;
    private final ArrayDeque<String> log = new ArrayDeque<>();
    private long logged; // How many lines there were, of which log has the last; guarded by log.
    private final Ready ready;

    private Broker(Options options) {
        List<String> command = options.command(Program.path());
        ProcessBuilder builder = new ProcessBuilder(command);
        withoutSettings(builder.environment());
        try {
            process = builder.start();
        } catch (IOException e) {
            throw new StartException(whyNot(Path.of(command.get(0)), e), e);
        }
        reader = new Thread(this::readLog, "muster-log");
        reader.setDaemon(true);
        reader.start();
        ready = new Ready(firstLine(options.timeout));
    }

    /** Starts a broker with the default settings. */
    public static Broker start() {
        return new Options().start();
    }

    /** A broker with settings: {@code Broker.with("num.partitions", "6").start()}. */
    public static Options with(String setting, String value) {
        return new Options().with(setting, value);
    }

    /**
     * The broker that all tests of this JVM share, started by the first. Do not close it: it ends with the JVM.
     * {@link EmbeddedMuster} without settings gives the same one.
     */
    public static Broker shared() {
        return shared(new Options());
    }

    static Broker shared(Options options) {
        synchronized (SHARED) {
            Broker broker = SHARED.get(options);
            if (broker == null || !broker.process.isAlive()) {
                broker = options.start();
                SHARED.put(options, broker);
            }
            return broker;
        }
    }

    private static void withoutSettings(Map<String, String> environment) {
        environment.keySet().removeIf(name -> name.startsWith("MUSTER_") || name.startsWith("KAFKA_"));
    }

    private static String whyNot(Path program, IOException e) {
        String why = "muster: cannot run " + program + ": " + e.getMessage() + ". ";
        if (!Files.exists(program)) {
            return why + "There is no such file.";
        }
        return why + "Is it for this platform, and does its file system let programs run (noexec)? Set the system property muster.cache "
                + "or the variable MUSTER_CACHE to another folder, or MUSTER_BINARY to the path of another muster program.";
    }

    private void readLog() {
        try (BufferedReader lines = reader(process.getErrorStream())) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                synchronized (log) {
                    log.add(line);
                    logged++;
                    if (log.size() > LOG_LINES) {
                        log.remove();
                    }
                }
            }
        } catch (IOException e) {
            // The broker has ended.
        }
    }

    private static BufferedReader reader(InputStream in) {
        return new BufferedReader(new InputStreamReader(in, StandardCharsets.UTF_8));
    }

    private String firstLine(Duration timeout) {
        CompletableFuture<String> line = new CompletableFuture<>();
        Thread waiting = new Thread(() -> {
            try {
                line.complete(reader(process.getInputStream()).readLine());
            } catch (IOException e) {
                line.complete(null);
            }
        }, "muster-ready");
        waiting.setDaemon(true);
        waiting.start();
        String why = "it ended";
        try {
            String got = line.get(timeout.toMillis(), TimeUnit.MILLISECONDS);
            if (got != null) {
                return got;
            }
        } catch (TimeoutException e) {
            why = "it was not ready within " + timeout.toMillis() + " ms";
        } catch (ExecutionException e) {
            why = e.getMessage();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            why = "the thread was interrupted";
        }
        close();
        throw new StartException("muster: the broker did not start: " + why + "\n" + log());
    }

    /** What clients connect to, as host:port. */
    public String bootstrapServers() {
        return ready.listeners.values().iterator().next();
    }

    /** The advertised address of each listener, by its name. */
    public Map<String, String> listeners() {
        return ready.listeners;
    }

    /** Where the console and the HTTP API are; empty unless {@link Options#http} turned them on. */
    public String httpUrl() {
        return ready.http;
    }

    /** The version of the broker. */
    public String version() {
        return ready.version;
    }

    /** The process id of the broker. */
    public long pid() {
        return process.pid();
    }

    /** The last lines of the broker's log, also after it has stopped. */
    public String log() {
        synchronized (log) {
            return String.join("\n", log);
        }
    }

    long logged() {
        synchronized (log) {
            return logged;
        }
    }

    /** What was logged after so many lines. */
    String logSince(long lines) {
        synchronized (log) {
            return log.stream().skip(Math.max(0, lines - (logged - log.size()))).collect(Collectors.joining("\n"));
        }
    }

    /** Creates a topic of one partition and returns its name, one that there never was. */
    public String topic() {
        return topic(1);
    }

    /** Creates a topic and returns its name, one that there never was. */
    public String topic(int partitions) {
        return topic("topic-" + UUID.randomUUID(), partitions, Collections.emptyMap());
    }

    /** Creates a topic with Kafka's settings of topics, and returns its name. */
    public String topic(String name, int partitions, Map<String, String> settings) {
        List<String> command = new ArrayList<>(Arrays.asList(Program.path().toString(), "topics", "create", name, "--partitions",
                Integer.toString(partitions), "--broker", bootstrapServers()));
        settings.forEach((setting, value) -> command.addAll(Arrays.asList("--config", setting + "=" + value)));
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        withoutSettings(builder.environment());
        try {
            Process create = builder.start();
            create.getOutputStream().close();
            String said = new String(create.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            if (create.waitFor() != 0) {
                throw new IllegalArgumentException("muster: " + said.strip());
            }
        } catch (IOException e) {
            throw new IllegalStateException("muster: cannot create topic " + name, e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("muster: interrupted while creating topic " + name, e);
        }
        return name;
    }

    /** Stops the broker. What it kept in memory is gone. */
    @Override
    public void close() {
        try {
            process.getOutputStream().close(); // Its stdin; --until-eof.
        } catch (IOException e) {
            // It has ended by itself.
        }
        try {
            if (!process.waitFor(STOP_SECONDS, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
            reader.join();
        } catch (InterruptedException e) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }

    /** How a broker is started. */
    public static final class Options implements Comparable<Options> {
        private final TreeMap<String, String> settings = new TreeMap<>();
        private Path data;
        private boolean http;
        private Duration timeout = Duration.ofSeconds(60);

        /** Sets one of Kafka's broker settings. */
        public Options with(String setting, String value) {
            settings.put(setting, value);
            return this;
        }

        /** Keeps records in a folder instead of memory. */
        public Options data(Path folder) {
            data = folder;
            return this;
        }

        /** Turns on the console and the HTTP API, at {@link Broker#httpUrl}. */
        public Options http() {
            http = true;
            return this;
        }

        /** Sets how long the start may take: 60 seconds, unless set. */
        public Options timeout(Duration limit) {
            timeout = limit;
            return this;
        }

        /** Starts the broker. Clients can connect when this returns. */
        public Broker start() {
            return new Broker(this);
        }

        private List<String> command(Path program) {
            List<String> command = new ArrayList<>(Arrays.asList(program.toString(), "serve", "--ready", "--until-eof"));
            command.addAll(Arrays.asList("--http", http ? "127.0.0.1:0" : "off"));
            command.addAll(data == null ? Arrays.asList("--store", "mem") : Arrays.asList("--store", "disk", "--data", data.toString()));
            if (!settings.containsKey("listeners")) {
                command.addAll(Arrays.asList("--listen", "127.0.0.1:0"));
            }
            settings.forEach((setting, value) -> command.addAll(Arrays.asList("--set", setting + "=" + value)));
            return command;
        }

        @Override
        public int compareTo(Options other) {
            return command(Path.of("")).toString().compareTo(other.command(Path.of("")).toString());
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Options && compareTo((Options) other) == 0;
        }

        @Override
        public int hashCode() {
            return command(Path.of("")).hashCode();
        }
    }
}
