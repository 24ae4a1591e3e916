package muster.junit;

import java.util.Collections;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.AfterTestExecutionCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.BeforeTestExecutionCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;
import org.junit.platform.commons.support.AnnotationSupport;

/** What {@link EmbeddedMuster} does. */
final class EmbeddedMusterExtension
        implements BeforeAllCallback, AfterAllCallback, BeforeTestExecutionCallback, AfterTestExecutionCallback, ParameterResolver {
    private static final Namespace NAMESPACE = Namespace.create(EmbeddedMusterExtension.class);

    @Override
    public void beforeAll(ExtensionContext context) {
        EmbeddedMuster wanted = AnnotationSupport.findAnnotation(context.getRequiredTestClass(), EmbeddedMuster.class).orElse(null);
        if (wanted == null) {
            return; // A class inside of one that has it.
        }
        Broker.Options options = new Broker.Options();
        for (String property : wanted.brokerProperties()) {
            int equals = property.indexOf('=');
            if (equals < 1) {
                throw new StartException("muster: brokerProperties are as \"num.partitions=6\", not \"" + property + "\"");
            }
            options.with(property.substring(0, equals).strip(), property.substring(equals + 1).strip());
        }
        if (wanted.http()) {
            options.http();
        }
        Broker broker = wanted.fresh() ? options.start() : Broker.shared(options);
        context.getStore(NAMESPACE).put("broker", broker);
        for (String topic : wanted.topics()) {
            createUnlessThere(broker, topic);
        }
        if (!wanted.bootstrapServersProperty().isEmpty()) {
            System.setProperty(wanted.bootstrapServersProperty(), broker.bootstrapServers());
        }
    }

    private static void createUnlessThere(Broker broker, String topic) {
        try {
            broker.topic(topic, 1, Collections.emptyMap());
        } catch (IllegalArgumentException e) {
            if (!e.getMessage().contains("already exists")) {
                throw e;
            }
        }
    }

    @Override
    public void afterAll(ExtensionContext context) {
        EmbeddedMuster wanted = AnnotationSupport.findAnnotation(context.getRequiredTestClass(), EmbeddedMuster.class).orElse(null);
        if (wanted != null && wanted.fresh()) {
            broker(context).close();
        }
    }

    private static Broker broker(ExtensionContext context) {
        return context.getStore(NAMESPACE).get("broker", Broker.class);
    }

    @Override
    public void beforeTestExecution(ExtensionContext context) {
        context.getStore(NAMESPACE).put("logged", broker(context).logged());
    }

    @Override
    public void afterTestExecution(ExtensionContext context) {
        if (context.getExecutionException().isPresent()) {
            long before = context.getStore(NAMESPACE).get("logged", Long.class);
            System.err.println("muster: the broker's log during " + context.getDisplayName() + ":\n" + broker(context).logSince(before));
        }
    }

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        Class<?> type = parameter.getParameter().getType();
        return type == Broker.class || type == String.class && (parameter.isAnnotated(BootstrapServers.class) || parameter.isAnnotated(Topic.class));
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        Broker broker = broker(context);
        if (parameter.getParameter().getType() == Broker.class) {
            return broker;
        }
        return parameter.findAnnotation(Topic.class).map(topic -> broker.topic(topic.partitions())).orElseGet(broker::bootstrapServers);
    }
}
