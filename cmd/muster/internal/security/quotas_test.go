package security

import (
	"bytes"
	"encoding/json"
	"testing"

	"go.uber.org/goleak"

	"muster"
	"muster/internal/assert"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A bare user, client-id or ip is the default of all that have none of their own, and no one's
// quota by name.
func TestDefaultsOfQuotasAreToldFromNames(t *testing.T) {
	b, err := muster.Start(t.Context(), muster.Config{})
	assert.Must(t, err)
	t.Cleanup(func() { _ = b.Close() })
	run := func(args ...string) []byte {
		t.Helper()
		var out bytes.Buffer
		cmd := QuotasCommand()
		cmd.SetArgs(append(args, "--broker", b.Addr(), "--json"))
		cmd.SetOut(&out)
		assert.Must(t, cmd.ExecuteContext(t.Context()), "%v", args)
		return out.Bytes()
	}
	listed := func(of ...string) map[string]float64 {
		t.Helper()
		var all []QuotaState
		assert.Must(t, json.Unmarshal(run(append([]string{"list"}, of...)...), &all))
		out := map[string]float64{}
		for _, q := range all {
			out[q.entity()] = q.Values["producer_byte_rate"]
		}
		return out
	}
	run("set", "user", "producer_byte_rate=1KiB")
	run("set", "user=ann", "producer_byte_rate=2MiB")
	run("set", "user=ann", "client-id", "producer_byte_rate=512")
	for _, c := range []struct {
		of   []string
		want map[string]float64
	}{
		{nil, map[string]float64{"user": 1 << 10, "user=ann": 2 << 20, "user=ann client-id": 512}},
		{[]string{"user"}, map[string]float64{"user": 1 << 10}},
		{[]string{"user=ann"}, map[string]float64{"user=ann": 2 << 20, "user=ann client-id": 512}},
		{[]string{"user=bob"}, map[string]float64{}},
	} {
		assert.EqualMaps(t, listed(c.of...), c.want, "of %v", c.of)
	}
	run("remove", "user")
	if got := listed(); len(got) != 2 || got["user=ann"] == 0 {
		t.Errorf("after the default was removed there are %v", got)
	}
}
