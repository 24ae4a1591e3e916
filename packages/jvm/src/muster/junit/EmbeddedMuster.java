package muster.junit;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * Gives the tests of a class a broker. A test or its constructor gets it as a parameter of type {@link Broker}, its address
 * by {@link BootstrapServers}, and new topics by {@link Topic}. If a test fails, stderr has what the broker logged meanwhile.
 *
 * <p>Classes with the same settings share a broker, which ends with the JVM.
 */
@Documented
@Inherited
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@ExtendWith(EmbeddedMusterExtension.class)
public @interface EmbeddedMuster {
    /** Kafka's broker settings, as {@code "num.partitions=6"}. */
    String[] brokerProperties() default {};

    /** Names of topics to create, of one partition each, unless they exist. */
    String[] topics() default {};

    /** Whether this class has a broker for itself, which ends with it. */
    boolean fresh() default false;

    /** Whether the broker has its console and HTTP API, at {@link Broker#httpUrl}. */
    boolean http() default false;

    /** The system property that gets the address of the broker, which Spring Boot connects to; none if empty. */
    String bootstrapServersProperty() default "spring.kafka.bootstrap-servers";
}
