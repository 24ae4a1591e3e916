import java.io.File;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Another JVM with the class path and the flags of this one, for what must be killed or must end. */
final class Jvm implements AutoCloseable {
    private final Process process;
    private final Path output;

    Jvm(String main, String... args) throws IOException {
        List<String> command = new ArrayList<>(List.of(System.getProperty("java.home") + File.separator + "bin" + File.separator + "java"));
        command.addAll(ManagementFactory.getRuntimeMXBean().getInputArguments());
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), main));
        command.addAll(List.of(args));
        output = Files.createTempFile("jvm", ".log");
        process = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(output.toFile()).start();
    }

    /** What it printed so far. */
    String output() throws IOException {
        return Files.readString(output);
    }

    /** Waits for its end and returns its exit code. */
    int end() throws Exception {
        if (!process.waitFor(60, TimeUnit.SECONDS)) {
            // It prints where its threads are.
            new ProcessBuilder("kill", "-QUIT", Long.toString(process.pid())).start().waitFor();
            Thread.sleep(1000);
            throw new AssertionError("still running after 60 s; it printed:\n" + output());
        }
        return process.exitValue();
    }

    /** Asks it to end, as Ctrl-C does, and waits. */
    void stop() throws Exception {
        process.destroy();
        end();
    }

    /** Asks it to end, and kills it if it has not ended after some time. */
    void stopOrKill(long seconds) throws Exception {
        process.destroy();
        if (!process.waitFor(seconds, TimeUnit.SECONDS)) {
            kill();
        }
    }

    /** Ends it as kill -9 does. */
    void kill() throws Exception {
        process.destroyForcibly();
        end();
    }

    @Override
    public void close() throws Exception {
        kill();
        Files.deleteIfExists(output);
    }
}
