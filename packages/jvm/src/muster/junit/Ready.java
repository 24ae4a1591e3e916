package muster.junit;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** What a broker says when it is ready: a line of JSON, whose strings need no escapes. Other fields may be added. */
final class Ready {
    private static final Pattern LISTENERS = Pattern.compile("\"listeners\":\\[(.*?)]");
    private static final Pattern OBJECT = Pattern.compile("\\{(.*?)}");

    final Map<String, String> listeners;
    final String http;
    final String version;

    Ready(String line) {
        Map<String, String> found = new LinkedHashMap<>();
        Matcher list = LISTENERS.matcher(line);
        if (list.find()) {
            Matcher object = OBJECT.matcher(list.group(1));
            while (object.find()) {
                found.put(field(object.group(1), "name"), field(object.group(1), "advertised"));
            }
        }
        if (found.isEmpty()) {
            throw new StartException("muster: the broker names no listener: " + line);
        }
        listeners = Collections.unmodifiableMap(found);
        http = field(line, "http");
        version = field(line, "version");
    }

    private static String field(String object, String name) {
        Matcher m = Pattern.compile("\"" + name + "\":\"([^\"]*)\"").matcher(object);
        return m.find() ? m.group(1) : "";
    }
}
