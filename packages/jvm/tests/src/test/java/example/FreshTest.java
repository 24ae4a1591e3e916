package example;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import java.util.Set;
import muster.junit.Broker;
import muster.junit.EmbeddedMuster;
import org.apache.kafka.clients.admin.Admin;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;

@EmbeddedMuster(fresh = true, http = true, bootstrapServersProperty = "")
class FreshTest {
    private static Broker used;

    @Test
    void aFreshBrokerHasNoTopics(Broker broker) throws Exception {
        used = broker;
        assertTrue(broker.httpUrl().startsWith("http://127.0.0.1:"), broker.httpUrl());
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", broker.bootstrapServers()))) {
            assertEquals(Set.of(), admin.listTopics().names().get());
        }
    }

    @AfterAll
    static void itStillRuns() {
        assertTrue(ProcessHandle.of(used.pid()).isPresent());
    }
}
