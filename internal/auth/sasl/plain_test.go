package sasl

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	client "github.com/twmb/franz-go/pkg/sasl/plain"

	"muster/internal/assert"
)

func testPlain(users Users) (Mechanism, *work) {
	directory, work := counted(users)
	return NewPlain(directory, NewLimiter(Limits{Turns: 1}), []byte("marks"), 16), work
}

func TestPlainClientsLogIn(t *testing.T) {
	for _, h := range []Hash{SHA256, SHA512} {
		users := newUsers()
		users.set(t, h, "alice", "pässwörd, = and so on")
		server, _ := testPlain(users)
		for range 2 { // The second time it is remembered.
			wantLogin(t, client.Auth{User: "alice", Pass: "pässwörd, = and so on"}.AsMechanism(), server, "alice")
		}
		wantLogin(t, client.Auth{User: "alice", Zid: "alice", Pass: "pässwörd, = and so on"}.AsMechanism(), server, "alice")
		for _, wrong := range []client.Auth{{User: "alice", Pass: "x"}, {User: "alicf", Pass: "pässwörd, = and so on"}} {
			_, _, err := login(t, wrong.AsMechanism(), server)
			wantFailure(t, err, "Authentication failed: Invalid username or password", errInvalid)
		}
	}
}

func TestPlainUserMayNotActForAnother(t *testing.T) {
	users := newUsers()
	users.set(t, SHA256, "alice", "pw")
	server, work := testPlain(users)
	for _, password := range []string{"pw", "wrong"} {
		_, _, err := login(t, client.Auth{User: "alice", Zid: "admin", Pass: password}.AsMechanism(), server)
		wantFailure(t, err, "Authentication failed: Client requested an authorization id that is different from username", errIdentity)
	}
	assert.Equal(t, work.take(), [2]int64{}, "work is done for it")
}

func TestPlainUnknownNamesLookAndCostLikeWrongPasswords(t *testing.T) {
	for _, h := range []Hash{SHA256, SHA512} {
		users := newUsers()
		users.setSalted(t, h, "alice", "pw", []byte("1omfro7zwmumr3umxudzyj6scf"), 5000)
		server, work := testPlain(users)
		attempt := func(name string) [2]int64 {
			work.take()
			_, sent, err := login(t, client.Auth{User: name, Pass: "wrong"}.AsMechanism(), server)
			wantFailure(t, err, "Authentication failed: Invalid username or password", errInvalid)
			assert.Equal(t, sent, 0, "%s: bytes", name)
			return work.take()
		}
		cost := attempt("alice")
		assert.MustTrue(t, cost[1] >= 5000*32, "a wrong password costs %v: it was not derived", cost)
		for _, name := range []string{"alicf", "carol", "admin"} {
			if c := attempt(name); !sameCost(c, cost) {
				t.Errorf("%s costs %v, a wrong password %v", name, c, cost)
			}
		}
	}
}

func TestPlainRefusesMalformedMessages(t *testing.T) {
	users := newUsers()
	users.set(t, SHA256, "alice", "pw")
	server, _ := testPlain(users)
	for _, message := range []string{
		"", "\x00", "\x00\x00", "alice\x00pw", "\x00alice\x00", "\x00\x00pw", "\x00alice\x00pw\x00", "\x00alice\x00pw\x00x",
		"\x00alice\x00pw\xff", "\x00alice\x00" + strings.Repeat("p", maxPlain),
	} {
		_, err := server.Start().Next(context.Background(), []byte(message))
		wantFailure(t, err, "", nil)
	}
	e := server.Start()
	if _, err := e.Next(context.Background(), []byte("\x00alice\x00pw")); err != nil {
		t.Fatal(err)
	}
	_, err := e.Next(context.Background(), []byte("\x00alice\x00pw"))
	wantFailure(t, err, "", errOver)
}

func TestPlainRemembersRightPasswordsUntilTheyChange(t *testing.T) {
	users := newUsers()
	users.set(t, SHA256, "alice", "old")
	server, work := testPlain(users)
	old, changed := client.Auth{User: "alice", Pass: "old"}.AsMechanism(), client.Auth{User: "alice", Pass: "new"}.AsMechanism()
	derived := func() bool { return work.take()[1] > MinIterations*32 }

	wantLogin(t, old, server, "alice")
	assert.MustTrue(t, derived(), "the first login derives nothing")
	wantLogin(t, old, server, "alice")
	assert.False(t, derived(), "the second login derives again")
	for range 2 {
		if _, _, err := login(t, changed, server); err == nil {
			t.Fatal("logged in with a wrong password")
		}
		assert.True(t, derived(), "a wrong password is remembered")
	}
	users.set(t, SHA256, "alice", "new")
	if _, _, err := login(t, old, server); err == nil {
		t.Error("the old password still works")
	}
	wantLogin(t, changed, server, "alice")
	users.remove(SHA256, "alice")
	if _, _, err := login(t, changed, server); err == nil {
		t.Error("a user that is gone logs in")
	}
}

func TestRecentIsBoundedAndKeepsWhoComesOften(t *testing.T) {
	r := newRecent([]byte("s"), 10)
	often := r.mark(Credential{}, "often", "pw")
	r.add(often)
	for i := range 1000 {
		r.add(r.mark(Credential{}, fmt.Sprint(i), "pw"))
		if n := len(r.young) + len(r.old); n > 20 {
			t.Fatalf("%d marks", n)
		}
		assert.MustTrue(t, r.has(often), "forgotten after %d others", i)
	}
	assert.False(t, r.has(r.mark(Credential{}, "0", "pw")), "the first one is still there")
	none := newRecent([]byte("s"), 0)
	if none.add(often); none.has(often) {
		t.Error("a cache of no size remembers")
	}
}

func TestMarksOfDifferentLoginsDiffer(t *testing.T) {
	r := newRecent([]byte("s"), 1)
	seen := map[mark]string{}
	for what, m := range map[string]mark{
		"plain":           r.mark(Credential{}, "alice", "pw"),
		"shifted":         r.mark(Credential{}, "alicep", "w"),
		"hash":            r.mark(Credential{Hash: SHA512}, "alice", "pw"),
		"salt":            r.mark(Credential{Salt: []byte("x")}, "alice", "pw"),
		"stored key":      r.mark(Credential{StoredKey: []byte("x")}, "alice", "pw"),
		"server key":      r.mark(Credential{ServerKey: []byte("x")}, "alice", "pw"),
		"another secret":  newRecent([]byte("t"), 1).mark(Credential{}, "alice", "pw"),
		"another":         r.mark(Credential{}, "alice", "px"),
		"another's":       r.mark(Credential{}, "alicf", "pw"),
		"without a limit": r.mark(Credential{}, "", "alicepw"),
	} {
		if other, twice := seen[m]; twice {
			t.Errorf("%s and %s have the same mark", what, other)
		}
		seen[m] = what
	}
}

// While all places are taken, a wrong password waits, and one that was right
// before does not.
func TestPlainWaitsForAPlaceToDerive(t *testing.T) {
	users := newUsers()
	users.set(t, SHA256, "alice", "pw")
	directory, _ := counted(users)
	places := NewLimiter(Limits{Turns: 1})
	server := NewPlain(directory, places, []byte("s"), 16)
	right := client.Auth{User: "alice", Pass: "pw"}.AsMechanism()
	wantLogin(t, right, server, "alice")
	must(t, places.Acquire(context.Background(), "bob"))
	wantLogin(t, right, server, "alice")
	ctx, cancel := context.WithCancel(context.Background())
	waiting := make(chan error)
	go func() {
		_, err := server.Start().Next(ctx, []byte("\x00alice\x00wrong"))
		waiting <- err
	}()
	// Without the wait it would be told that the password is wrong.
	cancel()
	assert.ErrorIs(t, <-waiting, context.Canceled, "it waited and then")
	places.Release()
	if _, _, err := login(t, client.Auth{User: "alice", Pass: "wrong"}.AsMechanism(), server); err == nil {
		t.Error("logged in with a wrong password")
	}
}

// highest is a limiter that knows how many had a place at once.
type highest struct {
	Limiter
	mu       sync.Mutex
	now, top int
}

func (h *highest) Acquire(ctx context.Context, name string) error {
	err := h.Limiter.Acquire(ctx, name)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now++
	h.top = max(h.top, h.now)
	return err
}

func (h *highest) Release() {
	h.mu.Lock()
	h.now--
	h.mu.Unlock()
	h.Limiter.Release()
}

func TestPlainDerivesNoMoreAtOnceThanAllowed(t *testing.T) {
	users := newUsers()
	users.set(t, SHA256, "alice", "pw")
	places := &highest{Limiter: NewLimiter(Limits{Turns: 2})}
	server := NewPlain(NewDirectory(users, nil), places, nil, 16)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			_, err := server.Start().Next(context.Background(), []byte("\x00alice\x00wrong"))
			assert.ErrorIs(t, err, errInvalid)
		})
	}
	all.Wait()
	assert.True(t, places.top <= 2 && places.top != 0 && places.now == 0, "%d at once, %d never ended", places.top, places.now)
}

func TestPlainTakesUsersOfAJAASLineBesideStoredOnes(t *testing.T) {
	modules, err := ParseJAAS(`org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" password="x" user_admin="x" user_alice="jaas";`)
	must(t, err)
	line, err := UsersOf(modules[0].Passwords(), rand.Reader)
	must(t, err)
	stored := newUsers()
	stored.set(t, SHA512, "bob", "stored")
	stored.set(t, SHA256, "alice", "stored")
	server, _ := testPlain(Both(line, stored))
	for name, password := range map[string]string{"admin": "x", "alice": "jaas", "bob": "stored"} {
		wantLogin(t, client.Auth{User: name, Pass: password}.AsMechanism(), server, name)
	}
	for name, password := range map[string]string{"alice": "stored", "bob": "jaas", "carol": "x"} {
		if _, _, err := login(t, client.Auth{User: name, Pass: password}.AsMechanism(), server); err == nil {
			t.Errorf("%s logs in with %s", name, password)
		}
	}
	if _, ok := line.Credential(SHA512, "alice"); ok {
		t.Error("a credential of another hash")
	}
	stored.setSalted(t, SHA256, "eve", "stored", make([]byte, 24), 8192)
	text, other := Shape{Text: true, Iterations: MinIterations}, Shape{Length: 24, Iterations: 8192}
	for what, c := range map[string]struct{ got, want []Shape }{
		"both":              {Both(line, stored).Shapes(SHA256), []Shape{text, other}},
		"the other hash":    {Both(line, stored).Shapes(SHA512), []Shape{text}},
		"the line alone":    {Both(line, newUsers()).Shapes(SHA256), []Shape{text}},
		"the second alone":  {Both(newUsers(), stored).Shapes(SHA256), []Shape{text, other}},
		"nobody, and so on": {Both(newUsers(), newUsers()).Shapes(SHA256), nil},
	} {
		assert.EqualSlices(t, c.got, c.want, "%s", what)
	}
}

// A fleet that starts with one password has it derived once.
func TestPlainDerivesAPasswordOnceForAllWhoWaitWithIt(t *testing.T) {
	users := newUsers()
	users.set(t, SHA256, "alice", "pw")
	directory, work := counted(users)
	places := NewLimiter(Limits{Turns: 1})
	server := NewPlain(directory, places, []byte("s"), 16)
	wantLogin(t, client.Auth{User: "alice", Pass: "pw"}.AsMechanism(), NewPlain(directory, NewLimiter(Limits{Turns: 1}), nil, 16), "alice")
	once := work.take()
	synctest.Test(t, func(t *testing.T) {
		must(t, places.Acquire(t.Context(), "bob"))
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if _, err := server.Start().Next(t.Context(), []byte("\x00alice\x00pw")); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		places.Release()
		all.Wait()
	})
	if cost := work.take(); cost[1] > 2*once[1] { // Bytes that were hashed.
		t.Errorf("the work is %v, of one login it is %v", cost, once)
	}
}
