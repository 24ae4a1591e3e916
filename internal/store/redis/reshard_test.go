package redis

import (
	"strconv"
	"testing"

	"muster/internal/redistest"
	"muster/internal/store"
)

// moveSlot moves a key's slot from one primary of a cluster to another, as
// redis-cli --cluster reshard does.
func moveSlot(t *testing.T, s *redistest.Server, key string, to *redistest.Node) {
	t.Helper()
	from := s.Primary(t, key)
	do := func(n *redistest.Node, args ...string) any {
		t.Helper()
		v, err := n.Do(args...)
		if err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		return v
	}
	slot := strconv.FormatInt(do(to, "CLUSTER", "KEYSLOT", key).(int64), 10)
	source, target := do(from, "CLUSTER", "MYID").(string), do(to, "CLUSTER", "MYID").(string)
	do(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", source)
	do(from, "CLUSTER", "SETSLOT", slot, "MIGRATING", target)
	for {
		// One key at a time, so that for a while some are here and some there.
		keys := do(from, "CLUSTER", "GETKEYSINSLOT", slot, "1").([]any)
		if len(keys) == 0 {
			break
		}
		do(from, "MIGRATE", "127.0.0.1", strconv.Itoa(to.Port), keys[0].(string), "0", "5000")
	}
	for _, n := range []*redistest.Node{to, from} {
		do(n, "CLUSTER", "SETSLOT", slot, "NODE", target)
	}
}

func TestAppendsGoOnWhileASlotMoves(t *testing.T) {
	for _, layout := range []store.Layout{store.LayoutLog, store.LayoutStream} {
		t.Run(string(layout), func(t *testing.T) {
			s := redistest.CalmCluster(t)
			w := newWriter(t, s.URL(), store.LogConfig{Layout: layout, Replicas: 2})
			w.during(t, func() {
				for _, to := range s.Nodes[:3] {
					if to != s.Primary(t, w.key()) {
						moveSlot(t, s, w.key(), to)
					}
				}
			})
			w.wantAll(t)
		})
	}
}
