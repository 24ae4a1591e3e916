package example;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.concurrent.TimeUnit;
import muster.junit.EmbeddedMuster;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.kafka.core.KafkaTemplate;

/** Where @EmbeddedKafka was. */
@SpringBootTest
@EmbeddedMuster(topics = "orders")
class AnnotationTest {
    @Test
    void theApplicationReceivesWhatIsSent(@Autowired KafkaTemplate<String, String> template, @Autowired Orders orders) throws Exception {
        template.send("orders", "3 apples");
        assertEquals("3 apples", orders.received.poll(60, TimeUnit.SECONDS));
    }
}
