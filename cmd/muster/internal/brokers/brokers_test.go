package brokers

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"go.uber.org/goleak"

	"muster"
	"muster/cmd/muster/internal/cli"
	"muster/internal/assert"
	"muster/internal/redistest"
)

func TestMain(m *testing.M) {
	// What starts Redis servers lives as long as the process.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("muster/internal/redistest.launcher"))
}

// A drained broker that does not run is listed: it may be forgotten that it was drained.
func TestADrainedBrokerThatIsDownIsListed(t *testing.T) {
	redis := redistest.Single(t).URL()
	start := func(id int) *muster.Broker {
		b, err := muster.Start(t.Context(), muster.Config{Redis: redis, Properties: map[string]string{"node.id": strconv.Itoa(id)}})
		assert.Must(t, err)
		t.Cleanup(func() { _ = b.Close() })
		return b
	}
	one, two := start(1), start(2)
	list := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		cmd := Command()
		cmd.SetArgs(append([]string{"list", "--broker", one.Addr()}, args...))
		cmd.SetOut(&out)
		assert.Must(t, cmd.ExecuteContext(t.Context()))
		return out.String()
	}
	listed := func() (all []Listed) {
		t.Helper()
		assert.Must(t, json.Unmarshal([]byte(list("--json")), &all))
		return all
	}
	redistest.Eventually(t, "both brokers to be listed", func() bool { return len(listed()) == 2 })
	conn, err := (&cli.Flags{Brokers: []string{one.Addr()}}).Connect(t.Context())
	assert.Must(t, err)
	defer conn.Close()
	assert.Must(t, alterDrained(t.Context(), conn, kadm.AppendConfig, 2))
	assert.Must(t, two.Close())
	redistest.Eventually(t, "broker 2 to be known as down", func() bool {
		fleet, err := loadFleet(t.Context(), conn)
		return err == nil && !fleet.has(2)
	})
	all := listed()
	if len(all) != 2 || all[0].ID != 1 || !all[0].Running || *all[0].Drained || all[1].ID != 2 || all[1].Running || !*all[1].Drained || all[1].Address != "" {
		t.Errorf("listed are %+v", all)
	}
	if text := list(); !strings.Contains(text, "drained, not running\n") || !strings.Contains(text, "running, controller\n") {
		t.Errorf("list printed\n%s", text)
	}
}
