// Package redistest starts real Redis servers for tests: a single server, a
// Redis Cluster, a primary with replicas under Sentinel. It works with any
// Redis from 7 on and with Valkey, whichever is in PATH, as root or not.
//
// Servers listen on free loopback ports and keep their data in a folder of the
// test. They are ended by process id when the test ends; on Linux the kernel
// ends them too if the test's process dies before it could.
//
// A test that breaks things starts its own servers (Single, Cluster, Sentinel).
// A test that only uses them takes the package's (Shared, Each), which start
// when the first test wants them and end in Main, and keeps to keys under a
// Prefix of its own. Without Main every test gets its own.
package redistest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
)

// Kind is a way to deploy Redis.
type Kind string

// The kinds.
const (
	KindSingle   Kind = "single"
	KindCluster  Kind = "cluster"
	KindSentinel Kind = "sentinel"
)

// Kinds lists the kinds.
var Kinds = []Kind{KindSingle, KindCluster, KindSentinel}

// MasterName is what Sentinel calls the primary.
const MasterName = "muster"

// Server is a running deployment of one kind.
type Server struct {
	Kind Kind
	// Nodes are the servers with data: one; or three primaries and then their
	// replicas in the same order; or a primary and then its two replicas. After
	// a failover the roles differ, not the order.
	Nodes []*Node
	// Sentinels are the three sentinels, if the kind has them.
	Sentinels []*Node
}

// Single starts one server. config holds further lines of redis.conf, such as
// "maxmemory-policy allkeys-lru".
func Single(t testing.TB, config ...string) *Server {
	t.Helper()
	return own(t, KindSingle, failoverSoon, config)
}

// Cluster starts a Redis Cluster of three primaries with a replica each. A
// primary that dies is replaced after two or three seconds.
func Cluster(t testing.TB, config ...string) *Server {
	t.Helper()
	return own(t, KindCluster, failoverSoon, config)
}

// CalmCluster is a Cluster for tests that end no primary: it takes long to
// replace one.
func CalmCluster(t testing.TB, config ...string) *Server {
	t.Helper()
	return own(t, KindCluster, failoverLate, config)
}

// Sentinel starts a primary with two replicas, and three sentinels that
// replace it about two seconds after it died.
func Sentinel(t testing.TB, config ...string) *Server {
	t.Helper()
	return own(t, KindSentinel, failoverSoon, config)
}

// own starts a deployment that ends with the test.
func own(t testing.TB, kind Kind, patience time.Duration, config []string) *Server {
	t.Helper()
	s, err := start(kind, t.TempDir(), patience, config)
	t.Cleanup(func() {
		if t.Failed() {
			s.dump(t)
		}
		s.close()
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// How long a primary may be silent before it is replaced. No one ends a shared
// one, and that the machine is busy is no reason.
const (
	failoverSoon = time.Second
	failoverLate = 15 * time.Second
)

// start starts a deployment. What it returns must be closed even after an
// error.
func start(kind Kind, dir string, patience time.Duration, config []string) (*Server, error) {
	s := &Server{Kind: kind}
	binary, err := lookup()
	if err != nil {
		return s, err
	}
	switch kind {
	case KindCluster:
		err = s.startCluster(binary, dir, patience, config)
	case KindSentinel:
		err = s.startSentinel(binary, dir, patience, config)
	default:
		err = s.startNodes(binary, dir, 1, config)
	}
	if err != nil {
		return s, fmt.Errorf("starting redis (%s): %w", kind, err)
	}
	return s, nil
}

// URL returns what a broker is given to use this deployment.
func (s *Server) URL() string {
	switch s.Kind {
	case KindCluster:
		return "redis+cluster://" + addresses(s.Nodes)
	case KindSentinel:
		return "redis+sentinel://" + addresses(s.Sentinels) + "/" + MasterName
	default:
		return "redis://" + addresses(s.Nodes)
	}
}

func addresses(nodes []*Node) string {
	list := make([]string, len(nodes))
	for i, n := range nodes {
		list[i] = n.Addr()
	}
	return strings.Join(list, ",")
}

// Client connects to the deployment, until the test ends.
func (s *Server) Client(t testing.TB) rueidis.Client {
	t.Helper()
	option := rueidis.ClientOption{InitAddress: strings.Split(addresses(s.Nodes), ","), DisableCache: true}
	switch s.Kind {
	case KindSentinel:
		option.InitAddress = strings.Split(addresses(s.Sentinels), ",")
		option.Sentinel = rueidis.SentinelOption{MasterSet: MasterName, TopologyRefreshInterval: time.Second}
	case KindSingle:
		option.ForceSingleClient = true
	}
	client, err := rueidis.NewClient(option)
	if err != nil {
		t.Fatalf("connecting to %s: %v", s.URL(), err)
	}
	t.Cleanup(client.Close)
	return client
}

// close ends all processes.
func (s *Server) close() {
	for _, n := range s.Sentinels {
		n.Kill()
	}
	for _, n := range s.Nodes {
		n.Kill()
	}
}

var shared struct {
	sync.Mutex
	enabled bool
	dirs    []string
	servers map[Kind]*Server
}

// Main runs a package's tests and then ends the servers that they shared, and
// does what else there is to clean up. It is what TestMain calls.
func Main(m *testing.M, clean ...func()) {
	shared.enabled = true
	code := m.Run()
	shared.Lock()
	defer shared.Unlock()
	for _, s := range shared.servers {
		s.close()
	}
	for _, dir := range shared.dirs {
		_ = os.RemoveAll(dir) // It is under the system's folder for such things.
	}
	for _, f := range clean {
		f()
	}
	os.Exit(code)
}

// Shared returns the deployment that the tests of this package share. A test
// must leave its nodes alone.
func Shared(t testing.TB, kind Kind) *Server {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if !shared.enabled {
		return own(t, kind, failoverLate, nil)
	}
	if s := shared.servers[kind]; s != nil {
		return s
	}
	dir, err := os.MkdirTemp("", "redistest")
	if err != nil {
		t.Fatal(err)
	}
	shared.dirs = append(shared.dirs, dir)
	s, err := start(kind, dir, failoverLate, nil)
	if err != nil {
		s.close()
		t.Fatal(err)
	}
	if shared.servers == nil {
		shared.servers = make(map[Kind]*Server)
	}
	shared.servers[kind] = s
	return s
}

// Each runs a test on a shared deployment of every kind, on all of them at once.
func Each(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	for _, kind := range Kinds {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			test(t, Shared(t, kind).URL())
		})
	}
}

var prefixes atomic.Int64

// Prefix returns a key prefix that no one else uses.
func Prefix(testing.TB) string {
	return fmt.Sprintf("test-%d-%d", os.Getpid(), prefixes.Add(1))
}

// Eventually waits until a condition holds, and fails the test after half a
// minute.
func Eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	if err := Poll(30*time.Second, func() error {
		if condition() {
			return nil
		}
		return fmt.Errorf("waiting for %s", what)
	}); err != nil {
		t.Fatal(err)
	}
}

// Poll calls try until it returns no error, or the time is over.
func Poll(limit time.Duration, try func() error) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("gave up after %v: %w", limit, err)
		case <-tick.C:
		}
	}
}
