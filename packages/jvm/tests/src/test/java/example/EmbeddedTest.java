package example;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import java.util.Set;
import muster.junit.BootstrapServers;
import muster.junit.Broker;
import muster.junit.EmbeddedMuster;
import muster.junit.Topic;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.config.ConfigResource;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;

@EmbeddedMuster(brokerProperties = "num.partitions=4", topics = {"orders", "payments"})
class EmbeddedTest {
    private final Broker ofConstructor;

    EmbeddedTest(Broker broker) {
        ofConstructor = broker;
    }

    @Test
    void parametersAreBrokerAddressAndTopics(Broker broker, @BootstrapServers String servers, @Topic String one, @Topic(partitions = 3) String three)
            throws Exception {
        assertSame(ofConstructor, broker);
        assertEquals(broker.bootstrapServers(), servers);
        assertEquals("hello", Client.roundTrip(servers, one));
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", servers))) {
            assertEquals(3, admin.describeTopics(Set.of(three)).allTopicNames().get().get(three).partitions().size());
        }
    }

    @Test
    void settingsAndTopicsAreThoseOfTheAnnotation(@BootstrapServers String servers) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", servers))) {
            assertTrue(admin.listTopics().names().get().containsAll(Set.of("orders", "payments")));
            int id = admin.describeCluster().nodes().get().iterator().next().id();
            ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, Integer.toString(id));
            assertEquals("4", admin.describeConfigs(Set.of(broker)).all().get().get(broker).get("num.partitions").value());
        }
    }

    @Test
    void theAddressIsThePropertyThatSpringReads(Broker broker) {
        assertEquals(broker.bootstrapServers(), System.getProperty("spring.kafka.bootstrap-servers"));
    }

    @Test
    void aBrokerWithOtherSettingsIsAnother(Broker broker) {
        assertNotEquals(broker.pid(), Broker.shared().pid());
        assertSame(Broker.shared(), Broker.shared());
    }

    @Nested
    class Inside {
        @Test
        void nestedClassesHaveTheSameBroker(Broker broker) {
            assertSame(ofConstructor, broker);
        }
    }
}
