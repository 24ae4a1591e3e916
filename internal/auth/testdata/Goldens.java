// Goldens writes the files beside it: what Java and Kafka answer to questions
// that muster must answer alike. Run it with kafka-clients, kafka-metadata,
// kafka-server-common, slf4j and pcollections in the class path:
//
//   java -cp ... Goldens.java names    > names.txt
//   java -cp ... Goldens.java mapping  > mapping.txt
//   java -cp ... Goldens.java decisions > decisions.txt
//
// Fields are separated by tabs; texts are in UTF-8 and hexadecimal.

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.net.InetAddress;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.util.*;
import javax.security.auth.x500.X500Principal;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.*;
import org.apache.kafka.common.security.auth.*;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;
import org.apache.kafka.metadata.authorizer.*;
import org.apache.kafka.server.authorizer.*;

public class Goldens {
    static final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "names": names(); break;
            case "mapping": mapping(); break;
            case "decisions": decisions(); break;
        }
    }

    static String hex(byte[] b) { return HexFormat.of().formatHex(b); }
    static String hex(String s) { return hex(s.getBytes(StandardCharsets.UTF_8)); }

    // ---- names of certificates

    static byte[] tlv(int tag, byte[]... parts) {
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        for (byte[] p : parts) body.writeBytes(p);
        ByteArrayOutputStream b = new ByteArrayOutputStream();
        b.write(tag);
        int n = body.size();
        if (n >= 256) { b.write(0x82); b.write(n >> 8); } else if (n >= 128) b.write(0x81);
        b.write(n);
        b.writeBytes(body.toByteArray());
        return b.toByteArray();
    }

    static byte[] oid(String s) {
        String[] p = s.split("\\.");
        ByteArrayOutputStream b = new ByteArrayOutputStream();
        b.write(Integer.parseInt(p[0]) * 40 + Integer.parseInt(p[1]));
        for (int i = 2; i < p.length; i++) {
            long v = Long.parseLong(p[i]);
            for (int shift = 28; shift > 0; shift -= 7) if (v >> shift != 0) b.write((int) (v >> shift & 0x7f | 0x80));
            b.write((int) (v & 0x7f));
        }
        return tlv(6, b.toByteArray());
    }

    static byte[] attr(String type, int tag, String value, Charset cs) { return tlv(0x30, oid(type), tlv(tag, value.getBytes(cs))); }
    static byte[] attr(String type, int tag, String value) { return attr(type, tag, value, StandardCharsets.UTF_8); }
    static byte[] one(String type, String value) { return tlv(0x31, attr(type, 12, value)); }

    static void name(byte[]... parts) {
        byte[] der = tlv(0x30, parts);
        out.println(hex(der) + "\t" + hex(new X500Principal(der).getName()) + "\t" + new X500Principal(der).getName().replaceAll("[^ -~]", "?"));
    }

    static void names() {
        String CN = "2.5.4.3", C = "2.5.4.6", L = "2.5.4.7", ST = "2.5.4.8", STREET = "2.5.4.9", O = "2.5.4.10", OU = "2.5.4.11",
            UID = "0.9.2342.19200300.100.1.1", DC = "0.9.2342.19200300.100.1.25", MAIL = "1.2.840.113549.1.9.1";
        name();
        name(one(CN, "alice"));
        name(one(C, "DE"), one(ST, "Berlin"), one(L, "Berlin"), one(O, "Example"), one(OU, "Data"), one(CN, "alice"));
        name(one(DC, "com"), one(DC, "example"), one(STREET, "1 Main St"), one(UID, "u1"));
        name(one(O, "Example"), tlv(0x31, attr(CN, 12, "alice"), attr(UID, 12, "u1"), attr(MAIL, 22, "a@example.com")));
        name(tlv(0x31, attr(UID, 12, "u1"), attr(CN, 12, "alice")));
        for (String t : new String[] {MAIL, "2.5.4.4", "2.5.4.5", "2.5.4.12", "2.5.4.13", "2.5.4.42", "2.5.4.46", "2.5.4.17", "2.5.4.97", "1.3.6.1.4.1.311.60.2.1.3", "1.2.3.4.268435456"})
            name(one(t, "value"), one(CN, "x"));
        for (int tag : new int[] {12, 18, 19, 20, 21, 22, 26, 27, 28, 30, 4, 2, 3, 5, 23, 0x2c, 0x33, 0x8c, 0x4c, 0xac})
            name(tlv(0x31, attr(CN, tag, "abc")));
        name(tlv(0x31, attr(CN, 30, "abc", StandardCharsets.UTF_16BE)));
        name(tlv(0x31, tlv(0x30, oid(CN), tlv(0x30, tlv(12, "x".getBytes())))));
        name(tlv(0x31, tlv(0x30, oid(CN), tlv(0x80, "x".getBytes()))));
        String[] values = {
            "", " ", "  ", "a", " a", "a ", "  a  b  ", "#a", "a#b", "a,b", "a+b", "a\"b", "a\\b", "a<b>c", "a;b", "a=b", "a/b", "a*b", "a:b",
            "CN=admin", "x,CN=admin", "x\\,CN=admin", "a\nb", "a\rb", "a\tb", "\u0000", "a\u0000b", "a\u007fb", "Zo\u00eb", "\u5f20\u4e09", "\ud83d\ude00",
            "a\u00a0", "\u3000a\u3000", "\u202eadmin", "e\u0301", "\u212aafka", "a\\00b", "'quoted'", "a|b", "a&b", "~!@$%^()[]{}?_-`", " # ", "\\ ", " \\",
        };
        for (String v : values) name(one(OU, "u"), one(CN, v));
        Random r = new Random(1);
        String[] types = {CN, C, L, ST, STREET, O, OU, UID, DC, MAIL, "2.5.4.5", "1.2.3"};
        int[] tags = {12, 12, 12, 19, 22, 20, 27, 30, 26, 4};
        String alphabet = "abcXYZ019 ,=+<>#;\"\\/*:.-_\u0000\n\u00e9\u5f20";
        for (int i = 0; i < 150; i++) {
            byte[][] parts = new byte[1 + r.nextInt(4)][];
            for (int p = 0; p < parts.length; p++) {
                byte[][] attrs = new byte[r.nextInt(4) == 0 ? 2 : 1][];
                for (int a = 0; a < attrs.length; a++) {
                    StringBuilder sb = new StringBuilder();
                    for (int n = r.nextInt(8); n > 0; n--) sb.append(alphabet.charAt(r.nextInt(alphabet.length())));
                    attrs[a] = attr(types[r.nextInt(types.length)], tags[r.nextInt(tags.length)], sb.toString());
                }
                parts[p] = tlv(0x31, attrs);
            }
            name(parts);
        }
    }

    // ---- ssl.principal.mapping.rules

    static void mapping() {
        String[] rules = {
            "DEFAULT", " DEFAULT ", "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/, DEFAULT",
            "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L", "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L", "RULE:^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$/$1@$2/U,DEFAULT",
            "RULE:^CN=(.*?), OU=(.*?),.*$/$1@$2/ , RULE:^CN=([^,ADEFLTU,]+)(,.*|$)/$1/,DEFAULT", "RULE:^CN=([^,]+).*$/$1/U", "RULE:(.*)/$1/", "RULE:.*/X/", "RULE:(.*)/<$1>/", "RULE:(.*?)/<$1>/",
            "RULE:CN=(.*?)/[$1]/", "RULE:(CN|CN=.*)/x/", "RULE:^CN=(.*)$/$0/", "RULE:^CN=(.*)$/$1$2/", "RULE:^CN=(.*)$/$12/", "RULE:^CN=(.*)$/$2/", "RULE:^CN=(.*)$/\\$1/", "RULE:^CN=(.*)$/a\\/b$1/",
            "RULE:^CN=(a)?(.*)$/$1-$2/", "RULE:^CN=(?<who>.*)$/${who}!/", "RULE:^CN=(?:a|b)(.*)$/$1/", "RULE:CN=([^/]*)\\/(.*)/$2/", "RULE:a/b/,DEFAULT", "RULE://x/", "RULE:^CN=(\\w+)\\s*,.*$/$1/", "RULE:^CN=([\\w.-]+).*/$1/",
            "RULE:\\QCN=a.b\\E.*/lit/", "RULE:^CN=(.{2,3}),.*$/$1/", "RULE:^CN=\\x41(.*)$/$1/", "RULE:^CN=(\\p{Lu}+).*$/$1/", "RULE:^CN=([\\p{L}]+).*$/$1/L", "RULE:[A-Z]*=?.*?/y/", "RULE:(CN=)?(.*?)/<$1$2>/", "RULE:\\bCN\\b.*/w/", "RULE:^CN=(.*),?.*$/$1/U",
            "RULE:^CN=(.*)$//,DEFAULT", ",DEFAULT,", "RULE:^CN=(.)(.)(.)(.)(.)(.)(.)(.)(.)(.)(.).*$/$11-$1/", "RULE:^CN=(.)(.*)$/$01$10/", "RULE:^CN=(.*)$/$1/,RULE:.+/other/", "RULE:^CN=(.*)$/$1$/", "RULE:^CN=.*$/$1/",
            "RULE:^CN=(\\w)\\s(\\w).*$/$1-$2/", "RULE:^CN=(\\w)[-\\s]+(\\w).*$/$1-$2/", "RULE:^CN=\\S+$/x/",
            // Rules that are none.
            "", "FOO", "RULE:a", "RULE:a/b", "RULE:a/b/X", "RULE:a/b/LU", "RULE:a/b/L/", "DEFAULT/L", "default", "DEFAULT RULE:a/b/", "RULE:a/b/ DEFAULT", "RULE:(/b/", "RULE:[/b/", "rule:a/b/",
        };
        String[] names = {
            "", "CN=alice", "CN=alice,OU=ServiceUsers,O=Example", "CN=Alice.B,OU=Data,O=Example,L=Berlin,ST=BE,C=DE", "cn=duke,ou=JavaSoft,dc=sun,dc=com", "CN=a.b,OU=x", "CN=a/b", "CN=x\\,CN\\=admin,OU=y",
            "CN=Zo\u00eb,OU=x", "CN=\u00c9COLE,OU=stra\u00dfe", "CN=a\nb", "CN=a\rb,OU=x", "CN=a\u2028b", "CN=a\u000bb,OU=x", "CN=abcdefghijklm", "OU=only", "CN=\ud83d\ude00,O=x", "CN=AbC", "CN=\u0130stanbul", "CN=\u03a3\u039f\u03a3", "CN=\ufb01sh",
        };
        for (String rule : rules) {
            SslPrincipalMapper mapper;
            try {
                mapper = SslPrincipalMapper.fromRules(rule);
            } catch (RuntimeException e) {
                out.println(hex(rule) + "\tinvalid\t\t\t" + rule);
                continue;
            }
            for (String name : names) {
                String answer;
                try {
                    answer = "ok\t" + hex(mapper.getName(name));
                } catch (SslPrincipalMapper.NoMatchingRule e) {
                    answer = "none\t";
                } catch (Exception e) {
                    answer = "throws\t";
                }
                out.println(hex(rule) + "\t" + hex(name) + "\t" + answer + "\t" + rule + "  " + name.replaceAll("[^ -~]", "?"));
            }
        }
    }

    // ---- decisions of Kafka's authorizer

    static class Context implements AuthorizableRequestContext {
        final KafkaPrincipal principal; final InetAddress address;
        Context(String user, String host) throws Exception { principal = new KafkaPrincipal("User", user); address = InetAddress.getByName(host); }
        public String listenerName() { return "x"; }
        public SecurityProtocol securityProtocol() { return SecurityProtocol.PLAINTEXT; }
        public KafkaPrincipal principal() { return principal; }
        public InetAddress clientAddress() { return address; }
        public int requestType() { return 0; }
        public int requestVersion() { return 0; }
        public String clientId() { return "c"; }
        public int correlationId() { return 0; }
    }

    static final Random r = new Random(2);

    @SafeVarargs
    static <T> T pick(T... of) { return of[r.nextInt(of.length)]; }

    static String someName() {
        if (r.nextInt(8) == 0) return "*";
        StringBuilder sb = new StringBuilder();
        for (int n = 1 + r.nextInt(4); n > 0; n--) sb.append("ab".charAt(r.nextInt(2)));
        return sb.toString();
    }

    static void decisions() throws Exception {
        AclOperation[] ops = AclOperation.values();
        for (int world = 0; world < 60; world++) {
            StandardAuthorizer a = new StandardAuthorizer();
            boolean everyone = world % 3 == 0;
            a.withPluginMetrics(new PluginMetricsImpl(new Metrics(), Map.of()));
            a.configure(Map.of("super.users", "User:root", "allow.everyone.if.no.acl.found", "" + everyone, "node.id", "1"));
            a.start(new AuthorizerServerInfo() {
                public org.apache.kafka.common.ClusterResource clusterResource() { return new org.apache.kafka.common.ClusterResource("c"); }
                public int brokerId() { return 1; }
                public Collection<org.apache.kafka.common.Endpoint> endpoints() { return List.of(); }
                public org.apache.kafka.common.Endpoint interBrokerEndpoint() { return null; }
                public Collection<String> earlyStartListeners() { return List.of(); }
            });
            out.println("world\t" + everyone);
            Set<StandardAcl> seen = new HashSet<>();
            for (int n = r.nextInt(14); n > 0; n--) {
                StandardAcl acl = new StandardAcl(pick(ResourceType.TOPIC, ResourceType.TOPIC, ResourceType.GROUP), someName(), pick(PatternType.LITERAL, PatternType.PREFIXED),
                    "User:" + pick("p", "p", "q", "*"), pick("*", "*", "*", "10.0.0.1"), ops[2 + r.nextInt(ops.length - 2)], pick(AclPermissionType.ALLOW, AclPermissionType.ALLOW, AclPermissionType.DENY));
                if (!seen.add(acl)) continue;
                a.addAcl(Uuid.randomUuid(), acl);
                out.println("rule\t" + acl.resourceType().code() + "\t" + acl.patternType().code() + "\t" + acl.resourceName() + "\t" + acl.principal() + "\t" + acl.host() + "\t" + acl.operation().code() + "\t" + acl.permissionType().code());
            }
            a.completeInitialLoad();
            for (int n = 0; n < 40; n++) {
                String user = pick("p", "p", "p", "q", "root", "s"), host = pick("10.0.0.1", "10.0.0.2"), name = someName();
                AclOperation op = ops[3 + r.nextInt(ops.length - 3)];
                ResourceType type = pick(ResourceType.TOPIC, ResourceType.TOPIC, ResourceType.GROUP);
                Context c = new Context(user, host);
                boolean yes = a.authorize(c, List.of(new Action(op, new ResourcePattern(type, name, PatternType.LITERAL), 1, true, true))).get(0) == AuthorizationResult.ALLOWED;
                boolean any = a.authorizeByResourceType(c, op, type) == AuthorizationResult.ALLOWED;
                out.println("ask\t" + type.code() + "\t" + name + "\t" + user + "\t" + host + "\t" + op.code() + "\t" + yes + "\t" + any);
            }
        }
    }
}
