package serve

import (
	"maps"
	"strings"
	"testing"

	"muster/internal/assert"
)

func TestServeInMemoryDoesNotWaitForMoreMembers(t *testing.T) {
	for _, c := range []struct {
		flags   serveFlags
		environ []string
		want    string
	}{
		{serveFlags{store: "mem"}, nil, "0"},
		{serveFlags{set: []string{"muster.store=mem"}}, nil, "0"},
		{serveFlags{}, []string{"MUSTER_STORE=mem"}, "0"},
		{serveFlags{store: "mem", set: []string{initialDelay + "=1234"}}, nil, "1234"},
		{serveFlags{store: "mem"}, []string{"MUSTER_GROUP_INITIAL_REBALANCE_DELAY_MS=1234"}, "1234"},
		{serveFlags{}, nil, ""}, // Kafka's default.
		{serveFlags{store: "disk"}, nil, ""},
		{serveFlags{store: "redis://127.0.0.1"}, nil, ""},
	} {
		props, err := c.flags.properties(c.environ)
		assert.Must(t, err)
		assert.Equal(t, props[initialDelay], c.want, "with %+v and %v the delay", c.flags, c.environ)
	}
}

func TestAVariableThatIsNoSettingIsWarnedOf(t *testing.T) {
	f := serveFlags{}
	props, err := f.properties([]string{"MUSTER_NUM_PARTITON=6", "MUSTER_NUM_PARTITIONS=3", "MUSTER_BROKER=127.0.0.1:9092", "MUSTER_NONSENSE=1", "PATH=/bin"})
	assert.MustTrue(t, err == nil && props["num.partitions"] == "3", "%v, %v", props, err)
	want := []string{`MUSTER_NUM_PARTITON is not a setting; did you mean MUSTER_NUM_PARTITIONS?`, "MUSTER_NONSENSE is not a setting"}
	assert.MustEqual(t, len(f.warnings), len(want), "warnings %q", f.warnings)
	for i, w := range want {
		if !strings.HasSuffix(f.warnings[i], w) {
			t.Errorf("%q does not end with %q", f.warnings[i], w)
		}
	}
	var out strings.Builder
	if f.warn(&out); strings.Count(out.String(), "warning: environment variable") != len(want) {
		t.Errorf("said %q", out.String())
	}
}

func TestVariablesOfKafkasImageAreSettings(t *testing.T) {
	f := serveFlags{set: []string{"num.io.threads=4"}}
	props, err := f.properties([]string{
		"KAFKA_NUM_PARTITIONS=3", "MUSTER_LOG_RETENTION_MS=5", "KAFKA_LOG_RETENTION_MS=4", "KAFKA_NUM_IO_THREADS=2", "KAFKA_OPTS=-Xmx1g", "KAFKA_NUM_PARTITON=9",
		"KAFKA_LISTENER_NAME_INSIDE_SCRAM___SHA___256_SASL_JAAS_CONFIG=x", "KAFKA_=y", "NUM_PARTITIONS=8",
	})
	if err != nil || len(f.warnings) != 0 {
		t.Fatal(err, f.warnings)
	}
	want := map[string]string{
		"num.partitions": "3", "log.retention.ms": "5", "num.io.threads": "4",
		"listener.name.inside.scram-sha-256.sasl.jaas.config": "x",
	}
	if !maps.Equal(props, want) {
		t.Errorf("settings %v, want %v", props, want)
	}
	if got := kafkaNames.Replace("a___b__c_d"); got != "a-b_c.d" {
		t.Errorf("the name is %s", got)
	}
}

func TestWhatIsAdvertisedAsInKafkasImageIsListenedOn(t *testing.T) {
	const advertised = "KAFKA_ADVERTISED_LISTENERS=IN://muster:29092,OUT://localhost:9092,SIX://[::1]:9094"
	for _, c := range []struct {
		flags   serveFlags
		environ []string
		want    string
	}{
		{serveFlags{}, []string{advertised}, "IN://0.0.0.0:29092,OUT://0.0.0.0:9092,SIX://0.0.0.0:9094"},
		{serveFlags{}, []string{advertised, "MUSTER_ADVERTISED_LISTENERS=A://b:1"}, "A://0.0.0.0:1"},
		{serveFlags{}, []string{advertised, "KAFKA_LISTENERS=IN://:1"}, "IN://:1"},
		{serveFlags{}, []string{advertised, "MUSTER_LISTENERS=IN://:2"}, "IN://:2"},
		{serveFlags{listen: []string{"127.0.0.1:3"}}, []string{advertised}, "PLAINTEXT://127.0.0.1:3"},
		{serveFlags{set: []string{"listeners=IN://:4"}}, []string{advertised}, "IN://:4"},
		{serveFlags{}, []string{"KAFKA_ADVERTISED_LISTENERS=nonsense"}, ""},
		// Elsewhere they open no port that they did not before.
		{serveFlags{}, []string{"MUSTER_ADVERTISED_LISTENERS=A://b:1", "KAFKA_NUM_PARTITIONS=3"}, ""},
		{serveFlags{set: []string{"advertised.listeners=A://b:1"}}, nil, ""},
	} {
		props, err := c.flags.properties(c.environ)
		if got := props["listeners"]; err != nil || got != c.want {
			t.Errorf("with %+v and %v: listeners %q, %v, want %q", c.flags, c.environ, got, err, c.want)
		}
	}
}

func TestTheURLOfARedisMayBeInTheEnvironment(t *testing.T) {
	props, err := (&serveFlags{}).properties([]string{"MUSTER_STORE=redis://127.0.0.1:6379"})
	assert.True(t, err == nil && props["muster.store"] == "redis" && props["muster.redis.url"] == "redis://127.0.0.1:6379", "%v, %v", props, err)
}

func TestHTTPCanBeTurnedOff(t *testing.T) {
	for flag, want := range map[string]string{"off": "", "127.0.0.1:8080": "127.0.0.1:8080", "https://0.0.0.0:9021": "https://0.0.0.0:9021"} {
		props, err := (&serveFlags{http: flag}).properties(nil)
		if got, set := props["muster.http.listener"]; err != nil || !set || got != want {
			t.Errorf("--http %s: %q, %t, %v", flag, got, set, err)
		}
	}
	if props, err := (&serveFlags{}).properties(nil); err != nil || len(props) != 0 {
		t.Errorf("without the flag: %v, %v", props, err)
	}
}
