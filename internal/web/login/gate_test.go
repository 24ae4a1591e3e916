package login

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/audit"
	"muster/internal/auth/sasl"
	"muster/internal/certs"
	"muster/internal/gate"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/meter"
)

// opened is a gate whose users a test sets.
type opened struct {
	*Gate
	t     *testing.T
	image *metadata.Image
	told  []audit.Entry
}

func open(t *testing.T, set map[string]string) *opened {
	t.Helper()
	cfg, err := config.NewBroker(set)
	assert.Must(t, err)
	o := &opened{t: t, image: metadata.NewImage(cfg, metadata.Broker{ID: 1})}
	gates := gate.New(gate.Options{Certs: certs.Settings{Config: cfg, Logger: slog.New(slog.DiscardHandler)}, Image: func() *metadata.Image { return o.image }})
	o.Gate = New(Options{Gates: gates, Meters: meter.New(), Audit: func(e audit.Entry) { o.told = append(o.told, e) }})
	assert.Must(t, o.Open(t.Context()))
	return o
}

// set gives a user a password.
func (o *opened) set(name, password string) {
	o.t.Helper()
	c, err := sasl.FromPassword(sasl.SHA256, password, []byte("a salt of sixteen"), sasl.MinIterations)
	assert.Must(o.t, err)
	edit := o.image.Edit()
	edit.SetUser(name, []metadata.Credential{{Hash: int8(c.Hash), Salt: c.Salt, Iterations: c.Iterations, StoredKey: c.StoredKey, ServerKey: c.ServerKey}})
	o.image = edit.Image()
}

// Who was no user when their login began has no proof of a password: such a login lets them in once,
// and does not hold from then on.
func TestALoginOfAUserWhoIsMadeMeanwhileHoldsNoLonger(t *testing.T) {
	o := open(t, map[string]string{"connection.failed.authentication.delay.ms": "0"})
	before := o.image
	o.set("ann", "anns")
	after, asked, made := o.image, 0, math.MaxInt
	o.users = sasl.NewDirectory(gate.NewUsers(func() *metadata.Image {
		if asked++; asked > made {
			return after
		}
		return before
	}), []byte("secret"))
	o.plain = sasl.NewPlain(o.users, sasl.NewLimiter(passwords), []byte("secret"), gate.RememberPasswords)
	_, known := o.users.Proof("ann")
	assert.MustFalse(t, known, "a user who is not there has a proof")
	made = 2 * asked // After the proof, and before the password is looked at.
	id, err := o.Login(t.Context(), Attempt{Way: WayCookie, Name: "ann", Password: "anns", Host: "10.0.0.1"})
	assert.MustTrue(t, err == nil && id.Principal == "User:ann", "%+v, %v", id, err)
	assert.False(t, o.Holds(id), "it holds, by the proof %q", id.Proof)
}

// Addresses of one machine have one share of the logins, whatever names they try, and those
// whose password was wrong keep their places while they wait.
func TestLoginsAreSharedAmongAddresses(t *testing.T) {
	o := open(t, nil)
	o.delay = time.Hour
	failed := make(chan struct{}, passwords.From)
	o.Audit = func(audit.Entry) { failed <- struct{}{} }
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	try := func(ctx context.Context, i int, host string) error {
		_, err := o.Login(ctx, Attempt{Way: WayBasic, Name: fmt.Sprint("user", i), Password: "x", Host: host})
		return err
	}
	for i := range passwords.From {
		all.Go(func() { assert.ErrorIs(t, try(ctx, i, fmt.Sprint("2001:db8::", i)), ErrLogin) })
	}
	for range passwords.From {
		<-failed
	}
	o.Audit = func(audit.Entry) { cancel() } // No one waits for long if one more is let in.
	assert.ErrorIs(t, try(ctx, passwords.From, "2001:db8::ffff"), ErrLoginBusy, "one more of the address")
	cancel()
	all.Wait()
	assert.ErrorIs(t, try(ctx, passwords.From, "2001:db8::ffff"), ErrLogin, "one more after all have gone")
}

// Users log in by their passwords. Whose password is another by now, or who is gone, is not
// who they were; the audit log and the metrics hear of all.
func TestUsersLogInByTheirPasswords(t *testing.T) {
	o := open(t, map[string]string{"connection.failed.authentication.delay.ms": "0"})
	assert.True(t, !o.WantsLogin() && !o.AlwaysWantsLogin(), "without users a login is wanted")
	o.set("ann", "anns")
	assert.True(t, o.WantsLogin() && !o.AlwaysWantsLogin(), "with a user none is wanted, or always")
	try := Attempt{Way: WayCookie, Name: "ann", Password: "anns", Host: "10.0.0.1"}
	id, err := o.Login(t.Context(), try)
	assert.MustTrue(t, err == nil && id.Principal == "User:ann" && id.Proof != "" && o.Holds(id), "%+v, %v", id, err)
	for _, wrong := range []Attempt{{Way: WayBasic, Name: "ann", Password: "x"}, {Way: WayBasic, Name: "eve", Password: "anns"}} {
		if id, err := o.Login(t.Context(), wrong); !errors.Is(err, ErrLogin) {
			t.Errorf("%s by %s: %+v, %v", wrong.Name, wrong.Password, id, err)
		}
	}
	if id, err := o.Login(t.Context(), Attempt{Way: WayBearer, Token: "a.b.c"}); !errors.Is(err, ErrToken) {
		t.Errorf("by a token: %+v, %v", id, err)
	}
	o.set("ann", "another")
	assert.False(t, o.Holds(id), "who has another password by now is who they were")
	o.LoggedOut(id, "10.0.0.1")
	var kinds []audit.Kind
	for _, e := range o.told {
		kinds = append(kinds, e.Kind)
	}
	want := []audit.Kind{audit.Login, audit.LoginFailed, audit.LoginFailed, audit.LoginFailed, audit.Logout}
	assert.MustEqual(t, len(kinds), len(want), "told are %v", kinds)
	for i := range want {
		assert.Equal(t, kinds[i], want[i], "told are %v, want %v", kinds, want)
	}
	counts := o.Meters.Logins.Read()
	if counts[meter.Labels{"HTTP", "COOKIE", gate.Succeeded}] != 1 || counts[meter.Labels{"HTTP", "BASIC", gate.LoginFailed}] != 2 || counts[meter.Labels{"HTTP", "BEARER", gate.LoginFailed}] != 1 {
		t.Errorf("counted are %v", counts)
	}
}
