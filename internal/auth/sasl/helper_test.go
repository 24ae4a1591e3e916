package sasl

import (
	"context"
	"crypto/rand"
	"errors"
	"hash"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/sasl"

	"muster/internal/assert"
)

// testUsers are users in the order in which they were added.
type testUsers struct {
	names       map[Hash][]string
	credentials map[Hash]map[string]Credential
}

// must ends the test if something fails that has to work.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newUsers() *testUsers {
	return &testUsers{make(map[Hash][]string), make(map[Hash]map[string]Credential)}
}

func (u *testUsers) set(t testing.TB, h Hash, name, password string) {
	t.Helper()
	salt, err := NewSalt(rand.Reader)
	must(t, err)
	u.setSalted(t, h, name, password, salt, MinIterations)
}

func (u *testUsers) setSalted(t testing.TB, h Hash, name, password string, salt []byte, iterations int) {
	t.Helper()
	c, err := FromPassword(h, password, salt, iterations)
	must(t, err)
	if u.credentials[h] == nil {
		u.credentials[h] = make(map[string]Credential)
	}
	if _, known := u.credentials[h][name]; !known {
		u.names[h] = append(u.names[h], name)
	}
	u.credentials[h][name] = c
}

func (u *testUsers) remove(h Hash, name string) {
	delete(u.credentials[h], name)
	u.names[h] = slices.DeleteFunc(u.names[h], func(n string) bool { return n == name })
}

func (u *testUsers) Credential(h Hash, name string) (Credential, bool) {
	c, ok := u.credentials[h][name]
	return c, ok
}

func (u *testUsers) Shapes(h Hash) []Shape {
	return ShapesOf(slices.Collect(maps.Values(u.credentials[h])))
}

// work counts the bytes that go into hashes, and the hashes made: what a login
// costs, without a clock.
type work struct{ made, bytes atomic.Int64 }

func (w *work) hashes(h Hash) hash.Hash {
	w.made.Add(1)
	return &countedHash{standard(h), w}
}

func (w *work) take() [2]int64 { return [2]int64{w.made.Swap(0), w.bytes.Swap(0)} }

// sameCost says whether two logins cost the same. Salts of Kafka's tools have 24 to 26 digits,
// those of users as well as invented ones, and are hashed a few times.
func sameCost(a, b [2]int64) bool { return a[0] == b[0] && max(a[1]-b[1], b[1]-a[1]) <= 16 }

type countedHash struct {
	hash.Hash
	work *work
}

func (c *countedHash) Write(p []byte) (int, error) {
	c.work.bytes.Add(int64(len(p)))
	return c.Hash.Write(p)
}

// counted makes a directory that counts its work.
func counted(users Users) (*Directory, *work) {
	w := new(work)
	d := NewDirectory(users, []byte("decoys"))
	d.hashes = w.hashes
	return d, w
}

// login lets a real client log in and returns the last step, and the bytes that
// went to the client.
func login(t testing.TB, client sasl.Mechanism, server Mechanism) (last Step, sent int, err error) {
	t.Helper()
	if client.Name() != server.Name() {
		t.Fatalf("the client speaks %s, the server %s", client.Name(), server.Name())
	}
	session, message, err := client.Authenticate(context.Background(), "host:9092")
	must(t, err)
	exchange := server.Start()
	for {
		last, err = exchange.Next(context.Background(), message)
		if err != nil {
			return last, sent, err
		}
		sent += len(last.Answer)
		var done bool
		done, message, err = session.Challenge(last.Answer)
		if err != nil {
			return last, sent, err
		}
		assert.MustTrue(t, done == last.Done, "the client thinks it is done: %t, the server: %t", done, last.Done)
		if done {
			return last, sent, nil
		}
	}
}

// wantLogin demands that a client logs in as a principal.
func wantLogin(t *testing.T, client sasl.Mechanism, server Mechanism, principal string) Step {
	t.Helper()
	step, _, err := login(t, client, server)
	assert.MustTrue(t, err == nil && step.Principal == principal, "logged in as %q, %v; not as %q", step.Principal, err, principal)
	return step
}

// wantFailure demands a failure with a text for the client and a reason.
func wantFailure(t *testing.T, err error, text string, reason error) {
	t.Helper()
	var failure *Failure
	assert.MustTrue(t, errors.As(err, &failure), "%v is no failure", err)
	assert.Equal(t, failure.Text, text, "the client is told")
	assert.False(t, reason != nil && !errors.Is(err, reason), "the reason is %q, not %q", err, reason)
}

// testClock is a clock that a test moves.
type testClock struct{ nanos atomic.Int64 }

func newClock() *testClock {
	c := new(testClock)
	c.nanos.Store(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixNano())
	return c
}

func (c *testClock) now() time.Time { return time.Unix(0, c.nanos.Load()) }

func (c *testClock) move(d time.Duration) { c.nanos.Add(int64(d)) }
