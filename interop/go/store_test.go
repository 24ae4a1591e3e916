package interop

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"slices"
	"testing"

	"muster/internal/assert"
	"muster/internal/redistest"
)

// storeKind is the store that the tests' brokers use: disk, or a kind of Redis
// (redis, redis-cluster, redis-sentinel). make e2e runs the tests on several.
var storeKind = func() string {
	if kind := os.Getenv("INTEROP_STORE"); kind != "" {
		return kind
	}
	return "disk"
}()

// redisKinds are the deployments that a store can be in.
var redisKinds = map[string]redistest.Kind{
	"redis": redistest.KindSingle, "redis-cluster": redistest.KindCluster, "redis-sentinel": redistest.KindSentinel,
}

// redisProperties are the settings of a broker whose records are in the Redis
// that all tests share, instead of a data folder. A folder's name stands for
// what was stored under it. INTEROP_LAYOUT is the layout of topics, if it is not the default.
// The lease is so long that a broker does not lose it on a busy machine:
// requests that it gets before it has its lease again are refused.
func redisProperties(t testing.TB, data string) map[string]string {
	t.Helper()
	kind, ok := redisKinds[storeKind]
	assert.MustTrue(t, ok, "INTEROP_STORE=%s is none of disk, redis, redis-cluster, redis-sentinel", storeKind)
	sum := sha256.Sum256([]byte(data))
	properties := map[string]string{
		"muster.redis.url": redistest.Shared(t, kind).URL(), "muster.redis.prefix": "interop-" + hex.EncodeToString(sum[:6]),
		"node.id":                   "1",
		"broker.session.timeout.ms": "20000", "broker.heartbeat.interval.ms": "200",
	}
	if layout := os.Getenv("INTEROP_LAYOUT"); layout != "" {
		properties["muster.redis.layout"] = layout
	}
	return properties
}

// keepsBatches says whether the store keeps record batches as they were sent, instead of
// their records. keptBatches are the settings of a topic that does in any store.
func keepsBatches() bool { return storeKind == "disk" || os.Getenv("INTEROP_LAYOUT") == "log" }

var keptBatches = []string{"muster.redis.layout", "log"}

// Leases for a broker that is killed and started again, and waits for its own:
// short if its clients try again, steady if they take what they are told.
var (
	shortLease  = []string{"--set", "broker.session.timeout.ms=1000"}
	steadyLease = []string{"--set", "broker.session.timeout.ms=4000"}
)

// storeFlags returns the flags of muster serve for the store under test.
func storeFlags(t testing.TB, data string) []string {
	t.Helper()
	if storeKind == "disk" {
		return []string{"--data", data}
	}
	var flags []string
	for name, value := range redisProperties(t, data) {
		flags = append(flags, "--set", name+"="+value)
	}
	return flags
}

// often is how many times something is done: n times, but fewer with stores
// where a broker that is killed leaves a lease behind that its successor waits for.
// INTEROP_OFTEN=1 has it done n times there too.
func often(n int) int {
	switch {
	case storeKind == "disk" || os.Getenv("INTEROP_OFTEN") != "":
		return n
	case storeKind == "redis":
		return min(n, 6)
	}
	return min(n, 3)
}

// onlyOn skips a test that is about other stores.
func onlyOn(t testing.TB, kinds ...string) {
	t.Helper()
	if !slices.Contains(kinds, storeKind) {
		t.Skipf("this is not about %s", storeKind)
	}
}
