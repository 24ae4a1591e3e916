package serve

import (
	"strings"
	"testing"
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
		if err != nil {
			t.Fatal(err)
		}
		if got := props[initialDelay]; got != c.want {
			t.Errorf("with %+v and %v the delay is %q, want %q", c.flags, c.environ, got, c.want)
		}
	}
}

func TestAVariableThatIsNoSettingIsWarnedOf(t *testing.T) {
	f := serveFlags{}
	props, err := f.properties([]string{"MUSTER_NUM_PARTITON=6", "MUSTER_NUM_PARTITIONS=3", "MUSTER_BROKER=127.0.0.1:9092", "MUSTER_NONSENSE=1", "PATH=/bin"})
	if err != nil || props["num.partitions"] != "3" {
		t.Fatalf("%v, %v", props, err)
	}
	want := []string{`MUSTER_NUM_PARTITON is not a setting; did you mean MUSTER_NUM_PARTITIONS?`, "MUSTER_NONSENSE is not a setting"}
	if len(f.warnings) != len(want) {
		t.Fatalf("warnings %q", f.warnings)
	}
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

func TestTheURLOfARedisMayBeInTheEnvironment(t *testing.T) {
	props, err := (&serveFlags{}).properties([]string{"MUSTER_STORE=redis://127.0.0.1:6379"})
	if err != nil || props["muster.store"] != "redis" || props["muster.redis.url"] != "redis://127.0.0.1:6379" {
		t.Errorf("%v, %v", props, err)
	}
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
