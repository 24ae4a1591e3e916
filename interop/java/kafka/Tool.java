import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.utils.Exit;

/**
 * One of Kafka's command line tools. It runs in this process, since each start of
 * a JVM costs more than what is checked then: its main is called, what it would
 * exit with is caught, and what it prints is kept.
 */
final class Tool {
    static String bootstrap;

    private static final Capture out = new Capture();
    private static final Capture err = new Capture();
    private static int status;

    private final String main;
    private final boolean bootstrapFirst;

    Tool(String main) {
        this(main, false);
    }

    /** A tool with commands may want the broker's address before them. */
    Tool(String main, boolean bootstrapFirst) {
        this.main = main;
        this.bootstrapFirst = bootstrapFirst;
    }

    /** What a tool's call of exit becomes. */
    private static final class Exited extends Error {
        private static final long serialVersionUID = 1;
    }

    /** Keeps what is printed by one tool after another. */
    private static final class Capture extends ByteArrayOutputStream {
        synchronized String text() {
            return toString(StandardCharsets.UTF_8);
        }
    }

    /** Takes over System.out, once and before any tool is loaded: Scala's remembers what it finds. */
    static void capture() {
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
        Exit.setExitProcedure((code, message) -> {
            // Tools may catch what is thrown here and exit again: the first counts.
            if (status < 0) {
                status = code;
            }
            throw new Exited();
        });
    }

    /** Runs the tool with what it finds on standard input, and returns what it prints. It must exit with 0. */
    String runWith(String input, String... args) throws Exception {
        List<String> all = new ArrayList<>(List.of(args));
        all.addAll(bootstrapFirst ? 0 : all.size(), List.of("--bootstrap-server", bootstrap));
        out.reset();
        err.reset();
        status = -1;
        System.setIn(new ByteArrayInputStream(input.getBytes(StandardCharsets.UTF_8)));
        Throwable failure = null;
        try {
            Class.forName(main).getMethod("main", String[].class).invoke(null, (Object) all.toArray(new String[0]));
        } catch (InvocationTargetException e) {
            failure = e.getCause() instanceof Exited ? null : e.getCause();
        }
        if (status > 0 || failure != null) {
            throw new AssertionError(main + " " + all + " failed with " + status + "; it printed:\n" + out.text() + err.text(), failure);
        }
        return out.text();
    }

    /** What the last tool wrote to standard error. */
    static String errors() {
        return err.text();
    }

    String run(String... args) throws Exception {
        return runWith("", args);
    }
}
