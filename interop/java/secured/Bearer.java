import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.UnsupportedCallbackException;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerTokenCallback;

/**
 * Gets tokens of OAUTHBEARER from the issuer of the matrix, as the JAAS options sub, for and
 * aud say; with the option once only one. It is here because older clients have none that
 * asks for tokens, and Kafka's own needs more jars than the clients.
 */
public final class Bearer implements AuthenticateCallbackHandler {
    private final HttpClient http = HttpClient.newHttpClient();
    private Map<String, ?> options = Map.of();
    private int given;

    @Override
    public void configure(Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> jaas) {
        options = jaas.get(0).getOptions();
    }

    @Override
    public synchronized void handle(Callback[] callbacks) throws IOException, UnsupportedCallbackException {
        for (Callback callback : callbacks) {
            if (!(callback instanceof OAuthBearerTokenCallback)) {
                throw new UnsupportedCallbackException(callback);
            }
            if (given++ > 0 && options.containsKey("once")) {
                throw new IOException("there is no other token");
            }
            ((OAuthBearerTokenCallback) callback).token(fetch());
        }
    }

    private OAuthBearerToken fetch() throws IOException {
        StringBuilder url = new StringBuilder(Secured.env("TOKENS")).append("?");
        for (String name : List.of("sub", "for", "aud")) {
            if (options.containsKey(name)) {
                url.append(name).append('=').append(URLEncoder.encode((String) options.get(name), StandardCharsets.UTF_8)).append('&');
            }
        }
        try {
            HttpResponse<String> answer = http.send(HttpRequest.newBuilder(URI.create(url.toString())).build(), HttpResponse.BodyHandlers.ofString());
            return new Token(found("\"access_token\":\"([^\"]+)\"", answer.body()));
        } catch (InterruptedException e) {
            throw new IOException(e);
        }
    }

    private static String found(String pattern, String text) throws IOException {
        Matcher m = Pattern.compile(pattern).matcher(text);
        if (!m.find()) {
            throw new IOException("no " + pattern + " in " + text);
        }
        return m.group(1);
    }

    @Override
    public void close() {}

    private static final class Token implements OAuthBearerToken {
        private final String value;
        private final String claims;

        Token(String value) {
            this.value = value;
            claims = new String(Base64.getUrlDecoder().decode(value.split("\\.")[1]), StandardCharsets.UTF_8);
        }

        private String claim(String pattern) {
            try {
                return found(pattern, claims);
            } catch (IOException e) {
                throw new IllegalStateException(e);
            }
        }

        @Override
        public String value() {
            return value;
        }

        @Override
        public Set<String> scope() {
            return Set.of();
        }

        @Override
        public long lifetimeMs() {
            return Long.parseLong(claim("\"exp\":(\\d+)")) * 1000;
        }

        @Override
        public String principalName() {
            return claim("\"sub\":\"([^\"]+)\"");
        }

        @Override
        public Long startTimeMs() {
            return Long.parseLong(claim("\"iat\":(\\d+)")) * 1000;
        }
    }
}
