package example;

import static org.junit.jupiter.api.Assertions.fail;

import java.io.DataOutputStream;
import java.io.IOException;
import java.net.Socket;
import muster.junit.Broker;
import muster.junit.EmbeddedMuster;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.engine.discovery.DiscoverySelectors;

/** Runs itself: a test that passes, and one that fails. */
@EmbeddedMuster
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class FailingExample {
    public static void main(String[] args) {
        var tests = LauncherDiscoveryRequestBuilder.request().selectors(DiscoverySelectors.selectClass(FailingExample.class)).build();
        LauncherFactory.create().execute(tests);
    }

    @Test
    @Order(1)
    void passes(Broker broker) throws IOException {
        refused(broker, 0x7ffffffe);
    }

    @Test
    @Order(2)
    void fails(Broker broker) throws IOException {
        refused(broker, 0x7fffffff);
        fail();
    }

    /** Announces a request of so many bytes, which the broker refuses, and logs. */
    private static void refused(Broker broker, int size) throws IOException {
        String address = broker.bootstrapServers();
        try (Socket socket = new Socket("127.0.0.1", Integer.parseInt(address.substring(address.indexOf(':') + 1)))) {
            new DataOutputStream(socket.getOutputStream()).writeInt(size);
            socket.getInputStream().read(); // The broker closes it.
        }
    }
}
