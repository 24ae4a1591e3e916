package interop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"muster/internal/assert"
)

const annsPassword = "anns: \u00fcber, =2C" // Letters and signs that mechanisms treat in ways of their own.

// loginsAtOnce is how many clients are tried at the same time: enough, since they mostly wait,
// and so few that none starves on a slow machine.
const loginsAtOnce = 12

// way is a way to log in.
type way struct{ listener, mechanism string }

func (w way) String() string { return strings.Trim(w.listener+" "+w.mechanism, " ") }

// ways lists all ways in of which a client is capable.
func (c *loginClient) ways() []way {
	all := []way{{byCertificate, ""}}
	for _, listener := range []string{inPlainText, underTLS} {
		for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"} {
			if c.tokens || mechanism != "OAUTHBEARER" {
				all = append(all, way{listener, mechanism})
			}
		}
	}
	return all
}

// account returns an account of ann, who may do everything with topics and groups whose
// names begin with "login".
func (s *site) account(w way) *account {
	a := &account{addr: s.b.addrs[w.listener], mechanism: w.mechanism, user: "ann", password: newSecret(annsPassword)}
	a.token = func() (string, time.Time, error) { return s.issuer.token("ann", "kafka", time.Hour) }
	if w.listener != inPlainText {
		a.trust = s.trust
	}
	if w.mechanism == "" {
		a.own = s.certificate("ann")
	}
	return a
}

// newAnnsSite starts a broker with the user ann.
func newAnnsSite(t *testing.T) *site {
	t.Helper()
	s := newSite(t)
	s.setPassword("ann", annsPassword)
	everything := func() *kadm.ACLBuilder {
		return kadm.NewACLs().ResourcePatternType(kadm.ACLPatternPrefixed).Operations(kadm.OpAll)
	}
	s.allow("ann", everything().Topics("login"))
	s.allow("ann", everything().Groups("login"))
	return s
}

func TestClientsLogInByEachMechanismAndWork(t *testing.T) {
	onlyOn(t, "disk") // Where records are kept says nothing about who comes in.
	const n = 20
	s := newAnnsSite(t)
	type attempt struct {
		client *loginClient
		way    way
		name   string // of topic and group
	}
	var attempts []attempt
	var names []string
	clients := append([]loginClient{kcatLogin}, loginClients...)
	for i := range clients {
		for j, w := range clients[i].ways() {
			name := fmt.Sprintf("login-%s-%d", clients[i].name, j)
			attempts, names = append(attempts, attempt{&clients[i], w, name}), append(names, name)
		}
	}
	s.topics(names...)
	ctx, cancel := context.WithTimeout(t.Context(), 2*groupTimeout)
	defer cancel()
	var running sync.WaitGroup
	places := make(chan struct{}, loginsAtOnce)
	at := func(f func()) {
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			f()
		})
	}
	for _, a := range attempts {
		ours, theirs := s.account(a.way), s.strangersAccount(a.way)
		at(func() {
			assert.NoError(t, a.client.roundTrip(ctx, ours, a.name, n), "%s, %s", a.client.name, a.way)
		})
		at(func() {
			assert.NoError(t, a.client.isRefused(ctx, theirs, a.name), "%s, %s, as somebody else", a.client.name, a.way)
		})
	}
	running.Wait()
	for _, name := range names {
		committed, err := s.admin.FetchOffsets(t.Context(), name)
		if o, ok := committed.Lookup(name, 0); err != nil || !ok || o.At != n {
			t.Errorf("%s: committed are %v, %v", name, committed, err)
		}
	}
}

// roundTrip writes records and reads them in a group, both called name.
func (c *loginClient) roundTrip(ctx context.Context, a *account, name string, n int) error {
	sent, read := 0, 0
	err := c.produce(ctx, a, name, func() (string, bool) {
		sent++
		return fmt.Sprint(sent), sent <= n
	})
	if err != nil {
		return fmt.Errorf("produce: %w", err)
	}
	var wrong error
	err = c.consume(ctx, a, name, name, func(value string) bool {
		read++
		if value != fmt.Sprint(read) {
			wrong = fmt.Errorf("record %d is %q", read, value)
		}
		return read < n
	})
	if err != nil {
		return fmt.Errorf("consume: %w", err)
	}
	return wrong
}

// strangersAccount is one that the broker does not take: another password, a token for
// someone else, a certificate of another authority.
func (s *site) strangersAccount(w way) *account {
	a := s.account(w)
	a.password = newSecret("guessed")
	a.token = func() (string, time.Time, error) { return s.issuer.token("ann", "web", time.Hour) }
	if w.mechanism == "" {
		a.own = s.foreign
	}
	return a
}

// isRefused tries to write, and says what is wrong with how that fails.
func (c *loginClient) isRefused(ctx context.Context, a *account, topic string) error {
	ctx, cancel := context.WithTimeout(ctx, clientTimeout)
	defer cancel()
	sent := 0
	err := c.produce(ctx, a, topic, func() (string, bool) {
		sent++
		return "forged", sent <= 1
	})
	switch {
	case err == nil:
		return errors.New("the record is written")
	case a.mechanism != "" && !c.refused(err):
		return fmt.Errorf("the error does not say that the login failed: %w", err)
	case a.mechanism == "" && !strings.Contains(err.Error(), "unknown certificate authority") && !strings.Contains(err.Error(), "unknown ca"):
		return fmt.Errorf("the error does not say that the certificate is not trusted: %w", err)
	}
	return nil
}
