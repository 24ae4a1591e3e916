package interop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"muster/internal/assert"
)

// loginStream is a client that writes and reads in a group at the same time.
type loginStream struct {
	client *loginClient
	name   string // of topic and group
	// There are two accounts of the same user, as for two programs.
	writes, reads *account
	connected     int64 // connections of the reader when it had begun

	mu      sync.Mutex
	written int // the last record that was handed to the client
	read    int // the last record that was read
	again   int // records that were read though a later one was before
	ending  bool
	last    bool // the last record was handed over
}

// next is the next record to write: a number, each one more than the last.
func (s *loginStream) next() (string, bool) {
	<-time.After(5 * time.Millisecond) // A stream, and no race.
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last {
		return "", false
	}
	s.last = s.ending
	s.written++
	return strconv.Itoa(s.written), true
}

// got takes a record. Each must be the one after the last, or be known.
func (s *loginStream) got(value string) error {
	n, err := strconv.Atoi(value)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case n == s.read+1:
		s.read = n
	case n <= s.read:
		s.again++
	default:
		return fmt.Errorf("%d was read after %d", n, s.read)
	}
	return nil
}

// over says whether all is written and read.
func (s *loginStream) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last && s.read == s.written
}

// flows waits until so many more records are read.
func (s *loginStream) flows(t *testing.T, more int) {
	t.Helper()
	s.mu.Lock()
	until := s.read + more
	s.mu.Unlock()
	waitFor(t, fmt.Sprintf("%s to read on", s.name), func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.read < until {
			return fmt.Errorf("%d records are written and %d read, want %d", s.written, s.read, until)
		}
		return nil
	})
}

// flowing waits until records flow in all streams.
func flowing(t *testing.T, all []*loginStream) {
	t.Helper()
	for _, s := range all {
		s.flows(t, 20)
		s.connected = s.reads.connected.Load()
	}
}

// run lets the stream flow until it is told to end.
func (s *loginStream) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.client.produce(ctx, s.writes, s.name, s.next); err != nil {
			cancel(fmt.Errorf("produce: %w", err))
		}
	})
	var wrong error
	err := s.client.consume(ctx, s.reads, s.name, s.name, func(value string) bool {
		wrong = s.got(value)
		return wrong == nil && !s.over()
	})
	if err = errors.Join(wrong, err); err != nil {
		cancel(fmt.Errorf("consume: %w", err))
	}
	running.Wait()
	return context.Cause(ctx)
}

// streams begins a stream of each client that can log in again.
func (s *site) streams(ctx context.Context, kind string, newAccount func() *account) (all []*loginStream, wait func()) {
	var names []string
	for i := range loginClients {
		if c := &loginClients[i]; c.again {
			name := "login-" + kind + "-" + c.name
			all, names = append(all, &loginStream{client: c, name: name, writes: newAccount(), reads: newAccount()}), append(names, name)
		}
	}
	s.topics(names...)
	var running sync.WaitGroup
	for _, st := range all {
		running.Go(func() {
			assert.NoError(s.t, st.run(ctx), "%s: %d records are written, %d read", st.name, st.written, st.read)
		})
	}
	s.t.Cleanup(running.Wait) // No one speaks of a test that has ended.
	return all, running.Wait
}

// keepLoggingIn waits until both sides of all streams have logged in more often on connections
// that stay, and records flow on afterwards.
func keepLoggingIn(t *testing.T, all []*loginStream, times int64) {
	t.Helper()
	wanted := map[*account]int64{}
	for _, s := range all {
		wanted[s.writes], wanted[s.reads] = s.writes.inPlace()+times, s.reads.inPlace()+times
	}
	for _, s := range all {
		for side, a := range map[string]*account{"writer": s.writes, "reader": s.reads} {
			waitFor(t, fmt.Sprintf("the %s of %s to log in again", side, s.name), func() error {
				if a.inPlace() < wanted[a] {
					return fmt.Errorf("%d logins, %d connections", a.logins.Load(), a.connected.Load())
				}
				return nil
			})
		}
		s.flows(t, 20)
	}
}

// end ends streams. All that was written must have been read by then, and once if no
// connection was lost: with a connection, a client may lose what it has read and not committed.
func end(t *testing.T, all []*loginStream, wait func()) {
	t.Helper()
	for _, s := range all {
		s.mu.Lock()
		s.ending = true
		s.mu.Unlock()
	}
	wait()
	for _, s := range all {
		t.Logf("%s: %d records, %d read again; %d connections of the writer, %d of the reader; %d and %d logins", s.name, s.read, s.again,
			s.writes.connected.Load(), s.reads.connected.Load(), s.writes.logins.Load(), s.reads.logins.Load())
		if s.read != s.written || s.again > 0 && s.reads.connected.Load() == s.connected {
			t.Errorf("%s: %d records written, read up to %d, %d more than once", s.name, s.written, s.read, s.again)
		}
	}
}

func TestLoginsEndWhileClientsWork(t *testing.T) {
	onlyOn(t, "disk") // Where records are kept says nothing about how long a session lasts.
	s := newAnnsSite(t)
	for name, f := range map[string]func(context.Context, *site){"tokens": tokensEnd, "passwords": passwordsChange} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // They mostly wait for sessions to end.
			ctx, cancel := context.WithTimeout(t.Context(), 2*groupTimeout)
			defer cancel()
			f(ctx, s.of(t))
		})
	}
}

// tokensEnd has clients that are given tokens for a few seconds.
func tokensEnd(ctx context.Context, s *site) {
	all, wait := s.streams(ctx, "tokens", func() *account {
		a := s.account(way{underTLS, "OAUTHBEARER"})
		a.token = func() (string, time.Time, error) { return s.issuer.token("ann", "kafka", briefSession) }
		// On a slow machine a token may end while librdkafka shows it, and it tries again.
		a.patient.Store(true)
		return a
	})
	flowing(s.t, all)
	keepLoggingIn(s.t, all, 2)
	end(s.t, all, wait)
}

// passwordsChange has a password change for clients whose logins last for a few seconds.
func passwordsChange(ctx context.Context, s *site) {
	all, wait := s.streams(ctx, "password", func() *account {
		a := s.account(way{inBrief, "SCRAM-SHA-256"})
		// Nothing can hold up librdkafka: it may log in while the password changes, and tries again.
		a.patient.Store(true)
		return a
	})
	flowing(s.t, all)
	var accounts []*account
	for _, st := range all {
		accounts = append(accounts, st.writes, st.reads)
	}
	s.changePassword("another", accounts)
	keepLoggingIn(s.t, all, 1)
	var refused sync.WaitGroup
	for i := range loginClients {
		refused.Go(func() {
			if err := loginClients[i].isRefused(ctx, s.account(way{underTLS, "SCRAM-SHA-256"}), all[0].name); err != nil {
				s.t.Errorf("%s, by the old password: %v", loginClients[i].name, err)
			}
		})
	}
	refused.Wait()
	end(s.t, all, wait)
}

// changePassword changes ann's password, at the broker and for the clients, while none of them
// logs in.
func (s *site) changePassword(password string, accounts []*account) {
	s.t.Helper()
	var held []*account
	waitFor(s.t, "a moment in which nobody logs in", func() error {
		for _, a := range accounts {
			if !slices.Contains(held, a) && a.during.TryLock() {
				held = append(held, a)
			}
		}
		if len(held) < len(accounts) {
			return fmt.Errorf("%d of %d log in", len(accounts)-len(held), len(accounts))
		}
		return nil
	})
	s.setPassword("ann", password)
	for _, a := range held {
		must(s.t, a.password.set(password))
		a.during.Unlock()
	}
}
