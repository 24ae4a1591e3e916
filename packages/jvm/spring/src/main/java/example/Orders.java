package example;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.kafka.annotation.KafkaListener;

/** An application that listens to a topic. */
@SpringBootApplication
class Orders {
    final BlockingQueue<String> received = new LinkedBlockingQueue<>();

    public static void main(String[] args) {
        SpringApplication.run(Orders.class, args);
    }

    @KafkaListener(topics = "orders", groupId = "orders", properties = "auto.offset.reset=earliest")
    void receive(String order) {
        received.add(order);
    }
}
