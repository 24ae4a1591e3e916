package example;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Map;
import java.util.concurrent.TimeUnit;
import muster.junit.Broker;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.test.annotation.DirtiesContext;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;

/** Where a container of Kafka was: the broker is of this class, and Spring is told its address. */
@SpringBootTest
@DirtiesContext
class PropertyTest {
    private static final Broker BROKER = Broker.start();

    @DynamicPropertySource
    static void kafka(DynamicPropertyRegistry properties) {
        BROKER.topic("orders", 1, Map.of());
        properties.add("spring.kafka.bootstrap-servers", BROKER::bootstrapServers);
    }

    @AfterAll
    static void stop() {
        BROKER.close();
    }

    @Test
    void theApplicationReceivesWhatIsSent(@Autowired KafkaTemplate<String, String> template, @Autowired Orders orders) throws Exception {
        template.send("orders", "5 pears");
        assertEquals("5 pears", orders.received.poll(60, TimeUnit.SECONDS));
    }
}
