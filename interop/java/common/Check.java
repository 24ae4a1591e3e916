import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Properties;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;

/**
 * Runs checks and says what came of them, in the form that interop/matrix
 * reads: a line "version V", a line "ok GROUP: NAME" for each check that passed,
 * and an exit code other than 0 if one did not.
 */
final class Check {
    private Check() {}

    interface Body {
        void run() throws Exception;
    }

    private static final Duration PATIENCE = Duration.ofSeconds(60);
    /** Where the results go, though a check may put something else in place of System.out. */
    private static final PrintStream out = System.out;
    private static int failed;

    /** Says which version of Kafka this is. */
    static void begin() throws IOException {
        out.println("version " + version());
    }

    static String version() throws IOException {
        Properties properties = new Properties();
        try (InputStream in = Check.class.getResourceAsStream("/kafka/kafka-version.properties")) {
            properties.load(in);
        }
        return properties.getProperty("version");
    }

    static void run(String name, Body body) {
        report(name, outcome(body));
    }

    /** Starts checks that run at the same time, and returns what waits for them and says what came of them, in their order. */
    static Runnable start(Map<String, Body> checks) {
        Map<String, CompletableFuture<Throwable>> outcomes = new LinkedHashMap<>();
        checks.forEach((name, body) -> {
            CompletableFuture<Throwable> result = new CompletableFuture<>();
            Thread thread = new Thread(() -> result.complete(outcome(body)), name);
            thread.setDaemon(true);
            thread.start();
            outcomes.put(name, result);
        });
        return () -> outcomes.forEach((name, result) -> report(name, result.join()));
    }

    private static Throwable outcome(Body body) {
        try {
            body.run();
            return null;
        } catch (Throwable t) {
            return t;
        }
    }

    private static void report(String name, Throwable problem) {
        if (problem == null) {
            out.println("ok " + name);
            return;
        }
        failed++;
        out.println("FAILED " + name);
        problem.printStackTrace(out);
    }

    /** Says more about what failed, if something did. */
    static void explain(String text) {
        if (failed > 0) {
            out.println(text);
        }
    }

    /** Ends the program. Threads that a failed check left behind do not keep it. */
    static void end() {
        out.flush();
        Runtime.getRuntime().halt(failed == 0 ? 0 : 1);
    }

    static void that(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    static void equal(Object want, Object got, String what) {
        if (!Objects.equals(want, got)) {
            throw new AssertionError(what + ": want " + want + ", got " + got);
        }
    }

    /** Waits until a condition holds. */
    static void until(String what, Callable<Boolean> condition) throws Exception {
        long end = System.nanoTime() + PATIENCE.toNanos();
        while (!condition.call()) {
            if (System.nanoTime() > end) {
                throw new AssertionError("after " + PATIENCE.toSeconds() + " s still not: " + what);
            }
            Thread.sleep(20);
        }
    }

    /** Demands that something fails in a certain way, be it the cause of an ExecutionException. */
    static void fails(Class<? extends Throwable> with, String what, Body body) {
        try {
            body.run();
        } catch (Throwable t) {
            Throwable cause = t instanceof ExecutionException ? t.getCause() : t;
            if (with.isInstance(cause)) {
                return;
            }
            throw new AssertionError(what + " failed otherwise than with " + with.getSimpleName(), t);
        }
        throw new AssertionError(what + " did not fail with " + with.getSimpleName());
    }
}
