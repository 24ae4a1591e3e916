package broker_test

import (
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/assert"
	"muster/internal/broker"
)

// wantNoStart expects that a broker does not start and says why.
func wantNoStart(t *testing.T, props map[string]string, want ...string) {
	t.Helper()
	all := map[string]string{"listeners": "PLAINTEXT://127.0.0.1:0", "muster.store": "mem"}
	maps.Copy(all, props)
	b, err := broker.Open(t.Context(), broker.Config{Properties: all})
	if err == nil {
		_ = b.Close()
		t.Errorf("started with %v", props)
		return
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("message %q does not say %q", err, w)
		}
	}
	assert.False(t, strings.Contains(err.Error(), "sesame"), "message %q has a password", err)
}

func TestAPortInUseIsNamed(t *testing.T) {
	b := start(t, nil)
	wantNoStart(t, map[string]string{"listeners": "PLAINTEXT://" + b.Addr()}, "port in use", b.Addr())
}

func TestALockedDataFolderIsNamed(t *testing.T) {
	folder := t.TempDir()
	start(t, map[string]string{"muster.store": "disk", "log.dir": folder})
	wantNoStart(t, map[string]string{"muster.store": "disk", "log.dir": folder}, folder, "in use by another broker")
}

func TestAnUnusableDataFolderIsNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a-file")
	must(t, os.WriteFile(file, nil, 0o600))
	wantNoStart(t, map[string]string{"muster.store": "disk", "log.dir": file}, file, "cannot be used")
}

func TestBadSettingsAreExplained(t *testing.T) {
	wantNoStart(t, map[string]string{"num.partitons": "3"}, `"num.partitons"`, `did you mean "num.partitions"?`)
	wantNoStart(t, map[string]string{"num.partitions": "three"}, "num.partitions", `"three"`)
	wantNoStart(t, map[string]string{"listeners": "nonsense"}, "listeners", `"nonsense"`)
	wantNoStart(t, map[string]string{"listeners": "INSIDE://127.0.0.1:0"}, `"INSIDE"`, "listener.security.protocol.map")
	wantNoStart(t, map[string]string{"advertised.listeners": "OUTSIDE://example:1"}, `"OUTSIDE"`)
	wantNoStart(t, map[string]string{"listeners": "SSL://127.0.0.1:0"}, "ssl.keystore.location")
	wantNoStart(t, map[string]string{"listeners": "SSL://127.0.0.1:0", "ssl.keystore.location": "no-such-file.pem"}, "no-such-file.pem")
}

func TestATopicNameThatIsNotAllowedIsExplained(t *testing.T) {
	b := start(t, nil)
	_, err := kadm.NewClient(client(t, b)).CreateTopic(t.Context(), 1, 1, nil, "no spaces please")
	assert.True(t, err != nil && strings.Contains(err.Error(), "INVALID_TOPIC_EXCEPTION"), "got %v", err)
	resp, err := kadm.NewClient(client(t, b)).CreateTopics(t.Context(), 1, 1, nil, "no spaces please")
	must(t, err)
	assert.Contains(t, resp["no spaces please"].ErrMessage, `' '`, "message")
}

func TestSeveralListenersAdvertiseTheirOwnAddresses(t *testing.T) {
	b := start(t, map[string]string{
		"listeners":                      "PLAINTEXT://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
		"advertised.listeners":           "OUTSIDE://broker.example:19092",
		"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUTSIDE:PLAINTEXT",
	})
	for i, want := range []string{b.Addr(), "broker.example:19092"} {
		c, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs()[i]))
		must(t, err)
		t.Cleanup(c.Close)
		meta, err := kadm.NewClient(c).BrokerMetadata(t.Context())
		must(t, err)
		assert.Equal(t, meta.Brokers[0].Host+":"+strconv.Itoa(int(meta.Brokers[0].Port)), want, "listener %d advertises", i)
	}
}
