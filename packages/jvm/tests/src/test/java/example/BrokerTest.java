package example;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import muster.junit.Broker;
import muster.junit.StartException;
import org.apache.kafka.clients.admin.Admin;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests of the package as it is installed from its jars. */
class BrokerTest {
    /** Prints an address, and waits to be killed. */
    static final class Victim {
        public static void main(String[] args) throws Exception {
            System.out.println(Broker.start().bootstrapServers());
            System.in.read();
        }
    }

    /** Starts a broker and says why that failed. */
    static final class Starter {
        public static void main(String[] args) {
            try (Broker broker = Broker.start()) {
                System.out.println(broker.topic() + " of " + broker.version());
            } catch (StartException e) {
                System.out.println(e.getMessage());
            }
        }
    }

    private static ProcessBuilder java(Class<?> main, String... options) {
        List<String> command = new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-Xshare:auto"));
        command.addAll(Arrays.asList(options));
        command.addAll(List.of("-cp", System.getProperty("surefire.test.class.path", System.getProperty("java.class.path")), main.getName()));
        return new ProcessBuilder(command).redirectErrorStream(true);
    }

    private static String output(ProcessBuilder builder) throws Exception {
        Process process = builder.start();
        String said = new String(process.getInputStream().readAllBytes());
        process.waitFor();
        return said;
    }

    @Test
    void tryStartsAndStopsABroker() throws Exception {
        Broker broker = Broker.with("num.partitions", "3").start();
        try (broker) {
            assertEquals("hello", Client.roundTrip(broker.bootstrapServers(), broker.topic(2)));
            assertEquals(Map.of("PLAINTEXT", broker.bootstrapServers()), broker.listeners());
            assertTrue(broker.version().startsWith("v"), broker.version());
            assertEquals("", broker.httpUrl());
            assertEquals("orders", broker.topic("orders", 2, Map.of("retention.ms", "1000")));
        }
        assertTrue(broker.log().contains("stopped"), broker.log());
        assertTrue(ProcessHandle.of(broker.pid()).isEmpty());
    }

    @Test
    void dataSurvivesARestart(@TempDir Path folder) throws Exception {
        try (Broker broker = Broker.with("num.partitions", "1").data(folder).start()) {
            broker.topic("kept", 1, Map.of());
        }
        try (Broker broker = Broker.with("num.partitions", "1").data(folder).start();
                Admin admin = Admin.create(Map.of("bootstrap.servers", broker.bootstrapServers()))) {
            assertEquals(Set.of("kept"), admin.listTopics().names().get());
        }
    }

    @Test
    void aBrokerThatCannotStartSaysWhy() {
        String why = assertThrows(StartException.class, () -> Broker.with("no.such.setting", "1").start()).getMessage();
        assertTrue(why.contains("no.such.setting"), why);
    }

    @Test
    void aPortThatIsTakenIsNamed() throws Exception {
        try (ServerSocket other = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
            String address = "127.0.0.1:" + other.getLocalPort();
            String why = assertThrows(StartException.class, () -> Broker.with("listeners", "PLAINTEXT://" + address).start()).getMessage();
            assertTrue(why.contains(address) && why.contains("in use"), why);
        }
    }

    @Test
    void aTopicThatIsRefusedSaysWhy() {
        try (Broker broker = Broker.start()) {
            var why = assertThrows(IllegalArgumentException.class, () -> broker.topic("t", 1, Map.of("retention.ms", "x")));
            assertTrue(why.getMessage().contains("retention.ms"), why.getMessage());
        }
    }

    @Test
    void noBrokerOutlivesAProcessThatIsKilled() throws Exception {
        Process victim = java(Victim.class).start();
        String address = new BufferedReader(new InputStreamReader(victim.getInputStream())).readLine();
        try (Socket socket = new Socket("127.0.0.1", Integer.parseInt(address.substring(address.indexOf(':') + 1)))) {
            socket.setSoTimeout(60_000);
            victim.destroyForcibly();
            assertEquals(-1, end(socket)); // The broker closes it when it ends.
        }
    }

    private static int end(Socket socket) throws IOException {
        try {
            return socket.getInputStream().read();
        } catch (SocketException e) { // Or resets it.
            return -1;
        }
    }

    @Test
    void variablesOfTheShellAreNoSettings() throws Exception {
        ProcessBuilder starter = java(Starter.class);
        starter.environment().put("MUSTER_LOG_RETENTION_MS", "nonsense");
        starter.environment().put("KAFKA_NUM_PARTITIONS", "nonsense");
        assertTrue(output(starter).startsWith("topic-"));
    }

    @Test
    void theProgramIsUnpackedOnceIntoTheCache(@TempDir Path folder) throws Exception {
        ProcessBuilder starter = java(Starter.class, "-Dmuster.cache=" + folder.resolve("cache"));
        assertTrue(output(starter).startsWith("topic-"));
        List<Path> files = files(folder);
        assertEquals(1, files.size(), files.toString());
        Object before = Files.getAttribute(files.get(0), "lastModifiedTime");
        assertTrue(output(starter).startsWith("topic-"));
        assertEquals(before, Files.getAttribute(files.get(0), "lastModifiedTime"));
        assertEquals(files, files(folder));
    }

    private static List<Path> files(Path folder) throws IOException {
        try (var all = Files.walk(folder)) {
            return all.filter(Files::isRegularFile).toList();
        }
    }

    @Test
    void aCacheThatCannotBeWrittenIsNamed(@TempDir Path folder) throws Exception {
        Path file = Files.writeString(folder.resolve("file"), "");
        String why = output(java(Starter.class, "-Dmuster.cache=" + file));
        assertTrue(why.contains("muster.cache") && why.contains(file.toString()), why);
    }

    @Test
    void withoutAUsersFolderATemporaryOneServes(@TempDir Path folder) throws Exception {
        Path file = Files.writeString(folder.resolve("file"), "");
        Path temporary = Files.createDirectory(folder.resolve("temporary"));
        ProcessBuilder starter = java(Starter.class, "-Duser.home=" + file, "-Djava.io.tmpdir=" + temporary);
        starter.environment().keySet().removeAll(List.of("XDG_CACHE_HOME", "LOCALAPPDATA"));
        assertTrue(output(starter).startsWith("topic-"));
        assertEquals(List.of(), files(temporary));

        String why = output(java(Starter.class, "-Duser.home=" + file, "-Djava.io.tmpdir=" + file));
        assertTrue(why.contains("no folder to unpack the program into") && why.contains("muster.cache"), why);
    }

    @Test
    void anUnsupportedPlatformIsNamed() throws Exception {
        String why = output(java(Starter.class, "-Dos.name=Linux", "-Dos.arch=riscv64"));
        assertTrue(why.contains("linux-riscv64") && why.contains("MUSTER_BINARY"), why);
    }

    @Test
    void aProgramThatCannotRunSaysWhatToDo(@TempDir Path folder) throws Exception {
        Path program = Files.writeString(folder.resolve("muster"), "#!/bin/sh\n");
        assertFalse(Files.isExecutable(program));
        String why = output(java(Starter.class, "-Dmuster.binary=" + program));
        assertTrue(why.contains("cannot run " + program) && why.contains("noexec"), why);
        why = output(java(Starter.class, "-Dmuster.binary=/nowhere/muster"));
        assertTrue(why.contains("no such file"), why);
    }

    @Test
    void aTestThatFailsShowsTheLogOfTheBroker() throws Exception {
        String said = output(java(FailingExample.class));
        assertTrue(said.contains("the broker's log during fails(Broker)"), said);
        assertTrue(said.contains("request of 2147483647 bytes"), said);
        assertFalse(said.contains("request of 2147483646 bytes"), said);
    }
}
