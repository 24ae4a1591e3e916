package broker_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	fsasl "github.com/twmb/franz-go/pkg/sasl"
	fplain "github.com/twmb/franz-go/pkg/sasl/plain"
	fscram "github.com/twmb/franz-go/pkg/sasl/scram"

	"muster/internal/assert"
	"muster/internal/auth/sasl"
	"muster/internal/broker"
	"muster/internal/redistest"
)

// guesses returns a wrong login, each another one: of a user, of names that do not exist,
// and of names that would fill the memory of whoever kept them.
func guesses(i int) fsasl.Mechanism {
	name := "ann"
	switch i % 3 {
	case 1:
		name = fmt.Sprint("nobody-", i)
	case 2:
		name = fmt.Sprint(i, strings.Repeat("x", 10_000))
	}
	if i%4 == 0 {
		return guessing(name)
	}
	return fplain.Auth{User: name, Pass: fmt.Sprint("wrong-", i)}.AsMechanism()
}

// guessing is a client of SCRAM that sends any proof in place of the one that its password
// makes: computing that would cost the test more than the broker, on the same processors.
type guessing string

func (guessing) Name() string { return "SCRAM-SHA-256" }

func (name guessing) Authenticate(context.Context, string) (fsasl.Session, []byte, error) {
	return name, []byte("n,,n=" + string(name) + ",r=guess"), nil
}

func (guessing) Challenge(answer []byte) (done bool, next []byte, err error) {
	nonce, _, _ := strings.Cut(string(answer), ",")
	return false, []byte("c=biws," + nonce + ",p=" + base64.StdEncoding.EncodeToString(make([]byte, 32))), nil
}

// guess has some connections try wrong passwords, one after the other each, until ctx
// ends, and counts those that were refused. As the broker waits a tenth of a second with
// each refusal, 100 of them try a thousand in a second, if the machine can.
func guess(ctx context.Context, t *testing.T, addr string, connections int) (refused *atomic.Int64, wait func()) {
	refused = &atomic.Int64{}
	var all sync.WaitGroup
	var tried atomic.Int64
	for range connections {
		all.Go(func() {
			for ctx.Err() == nil {
				if _, err := wrongLogin(addr, guesses(int(tried.Add(1)))); err != nil {
					t.Error(err)
					return
				}
				refused.Add(1)
			}
		})
	}
	return refused, all.Wait
}

// heap is what is in use.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // What pools keep is gone with the second.
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// work has clients that have logged in go on, and others log in; all of it succeeds. It
// returns how long that took.
func work(t *testing.T, b *broker.Broker, clients []*kgo.Client, logins []fsasl.Mechanism, round int) time.Duration {
	t.Helper()
	begun := time.Now()
	for i, c := range clients {
		produce(t, c, fmt.Sprint("orders-", i), 2*round, 2)
	}
	for _, login := range logins {
		if err := rightLogin(b.Addr(), login); err != nil {
			t.Errorf("round %d: a good login by %s: %v", round, login.Name(), err)
		}
	}
	return time.Since(begun)
}

// wrongPasswords is how many are tried: a second's worth, or a tenth of it.
func wrongPasswords() int64 {
	if testing.Short() {
		return 100
	}
	return 1000
}

// How fast passwords are tried, and how long good clients take meanwhile, depends on the
// machine, so that is told; that every one of them succeeds is what is asserted.
func TestAThousandWrongPasswordsASecondDisturbNobodyAndLeaveNothing(t *testing.T) {
	b := startSASL(t, nil)
	logins := []fsasl.Mechanism{
		fplain.Auth{User: "ann", Pass: "anns"}.AsMechanism(), fplain.Auth{User: "jim", Pass: "jims"}.AsMechanism(),
		fscram.Auth{User: "ann", Pass: "anns"}.AsSha256Mechanism(), fscram.Auth{User: "ann", Pass: "anns"}.AsSha512Mechanism(),
	}
	var clients []*kgo.Client
	for _, login := range logins {
		clients = append(clients, client(t, b, kgo.SASL(login)))
	}
	work(t, b, clients, logins, 0)
	calm := work(t, b, clients, logins, 1)
	before, routines := heap(), runtime.NumGoroutine()

	const attackers = 100
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begun := time.Now()
	refused, wait := guess(ctx, t, b.Addr(), attackers)
	round, most, slowest := 2, 0, time.Duration(0)
	for ; refused.Load() < wrongPasswords() && !t.Failed(); round++ {
		slowest = max(slowest, work(t, b, clients, logins, round))
		most = max(most, runtime.NumGoroutine())
	}
	rate := float64(refused.Load()) / time.Since(begun).Seconds()
	cancel()
	wait()
	t.Logf("%d wrong passwords on %d connections, %.0f a second (1,000 at most: each waits for a tenth of one)", refused.Load(), attackers, rate)
	t.Logf("meanwhile %d rounds of good clients and logins, all good, the slowest in %v (%v before); %d goroutines", round-2, slowest, calm, most)
	// One of each attacker, one of its connection; the rest is for clients that come and go.
	assert.True(t, most <= routines+3*attackers, "%d goroutines, %d before", most, routines)
	redistest.Eventually(t, "the goroutines to be gone", func() bool { return runtime.NumGoroutine() <= routines+20 })
	// Of the names alone there were more than 3 MB.
	after := heap()
	if t.Logf("%d KB are in use, %d KB before", after>>10, before>>10); after > before+3<<20 {
		t.Error("they were kept")
	}
	work(t, b, clients, logins, round)
}

// No one learns who exists: neither by what is sent nor by how much work it is. The least
// time of many tries is what the work takes, whatever else the machine does: where that
// keeps both from ever running undisturbed, more are made.
func TestAUserThatDoesNotExistCostsAsMuchAsAWrongPassword(t *testing.T) {
	b := startSASL(t, map[string]string{"connection.failed.authentication.delay.ms": "0"})
	wrong := map[string]func(name string) fsasl.Mechanism{
		"PLAIN":         func(name string) fsasl.Mechanism { return fplain.Auth{User: name, Pass: "wrong"}.AsMechanism() },
		"SCRAM-SHA-256": func(name string) fsasl.Mechanism { return fscram.Auth{User: name, Pass: "wrong"}.AsSha256Mechanism() },
		"SCRAM-SHA-512": func(name string) fsasl.Mechanism { return fscram.Auth{User: name, Pass: "wrong"}.AsSha512Mechanism() },
	}
	for mechanism, login := range wrong {
		least := map[string]time.Duration{"ann": time.Hour, "abe": time.Hour}
		same := func() bool {
			ratio := float64(least["ann"]) / float64(least["abe"])
			return ratio >= 0.5 && ratio <= 2
		}
		for try := 0; try < 40 || try < 1000 && !same(); try++ {
			for _, name := range []string{"ann", "abe"} {
				begun := time.Now()
				if _, err := wrongLogin(b.Addr(), login(name)); err != nil {
					t.Fatal(err)
				}
				least[name] = min(least[name], time.Since(begun))
			}
		}
		assert.NoError(t, wantSameAnswers(t, b, login), "%s", mechanism)
		assert.True(t, same(), "%s: %v for a user, %v for one that does not exist", mechanism, least["ann"], least["abe"])
	}
}

// wantSameAnswers returns an error unless a user and names that are none get the same answers, to the
// byte. One salt in forty is shorter than the others, so some salts are tried.
func wantSameAnswers(t *testing.T, b *broker.Broker, login func(name string) fsasl.Mechanism) error {
	t.Helper()
	var seen []string
	for range 5 {
		user, err := wrongLogin(b.Addr(), login("ann"))
		if err != nil {
			return err
		}
		for _, name := range []string{"abe", "bea", "cal"} {
			none, err := wrongLogin(b.Addr(), login(name))
			if err != nil {
				return err
			}
			if none.frames == user.frames && none.bytes == user.bytes {
				return nil
			}
			seen = append(seen, fmt.Sprintf("%d answers of %d bytes for a user, %d of %d for %s, who is none", user.frames, user.bytes, none.frames, none.bytes, name))
		}
		for _, h := range []sasl.Hash{sasl.SHA256, sasl.SHA512} {
			if err := b.SetPassword(t.Context(), "ann", "anns", h); err != nil {
				return err
			}
		}
	}
	return errors.New(strings.Join(seen, "\n"))
}

// A client that sends on before it knows that it is refused is told why all the same.
func TestAFailedLoginIsToldToWhoSentMore(t *testing.T) {
	b := startSASL(t, nil)
	format := kmsg.NewRequestFormatter()
	more := bytes.Repeat(format.AppendRequest(nil, &kmsg.MetadataRequest{Version: 5}, 8), 1000)
	token := format.AppendRequest(nil, &kmsg.SASLAuthenticateRequest{Version: 2, SASLAuthBytes: []byte(plain("ann", "wrong"))}, 7)
	for code, shakes := range map[byte]bool{58: true, 34: false} {
		w := connect(t, b)
		if shakes {
			w.handshake("PLAIN")
		}
		if _, err := w.Write(slices.Concat(token, more)); err != nil {
			t.Fatal(err)
		}
		if got := w.frame(); len(got) < 7 || got[6] != code { // After the correlation id, and no tags.
			t.Errorf("the answer is %q, want code %d", got, code)
		}
		if _, err := w.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the connection ends by %v", err)
		}
	}
}
