package cluster

import (
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/assert"
	"muster/internal/auth"
	"muster/internal/metadata"
	"muster/internal/redistest"
)

// secure gives someone a password, a right and a limit.
func secure(t *testing.T, c *Controller, name string) error {
	t.Helper()
	return errors.Join(
		c.AlterUsers(t.Context(), []metadata.UserChange{setUser(name, 1, 1)})[0],
		c.CreateRules(t.Context(), []auth.Rule{allow(name, "t")})[0],
		c.AlterQuotas(t.Context(), []metadata.QuotaChange{limit(name, 1)}, false)[0],
	)
}

// knows says whether someone has all three, or nothing.
func knows(image *metadata.Image, name string) (all, none bool) {
	_, user := image.Users.Credential(name, 1)
	rule := image.Rules.Has(allow(name, "t"))
	_, _, quota := image.Quotas.Effective(metadata.ProducerByteRate, name, "c")
	return user && rule && quota, !user && !rule && !quota
}

func TestBrokersThatShareAStoreShareUsersRulesAndQuotas(t *testing.T) {
	f := newFleet(t, redistest.Single(t), map[string]string{"super.users": "User:root", "authorizer.class.name": "muster"})
	one, two := f.join(1), f.join(2)
	f.agreed(one, two)
	if err := errors.Join(secure(t, one, "a"), secure(t, two, "b")); err != nil { // two has seen what one did, whatever it followed until now.
		t.Fatal(err)
	}
	same := func(what string, want func(*metadata.Image) bool) {
		t.Helper()
		for _, c := range []*Controller{one, two} {
			redistest.Eventually(t, what, func() bool { return want(c.Image()) })
		}
		assert.Equal(t, secured(one.Image()), secured(two.Image()), "they differ")
	}
	same("a and b", func(i *metadata.Image) bool {
		a, _ := knows(i, "a")
		b, _ := knows(i, "b")
		return a && b
	})
	ok(t, two.AlterUsers(t.Context(), []metadata.UserChange{{Name: "a", Hash: 1}}))
	ok(t, two.AlterQuotas(t.Context(), []metadata.QuotaChange{{Entity: limit("a", 1).Entity, Remove: []string{metadata.ProducerByteRate}}}, false))
	if deleted, errs := two.DeleteRules(t.Context(), []auth.Filter{exactly(allow("a", "t"))}); errs[0] != nil || len(deleted[0]) != 1 {
		t.Fatal(deleted, errs)
	}
	same("b without a", func(i *metadata.Image) bool {
		_, a := knows(i, "a")
		b, _ := knows(i, "b")
		return a && b
	})
	three := f.join(3)
	if a, b := secured(two.Image()), secured(three.Image()); a != b || !three.Image().Rules.IsSuper("User:root", "") || !three.Image().Authorizes() {
		t.Errorf("a third broker has\n%s\nand not\n%s", b, a)
	}
}

// TestUsersRulesAndQuotasAfterRedisCameBackWithAnOlderState takes the end of the metadata
// from two brokers that have seen it.
func TestUsersRulesAndQuotasAfterRedisCameBackWithAnOlderState(t *testing.T) {
	f := newFleet(t, redistest.Single(t), map[string]string{"super.users": "User:root"})
	one, two := f.join(1), f.join(2)
	f.agreed(one, two)
	both := func(what string, want func(*metadata.Image) bool) {
		t.Helper()
		for _, c := range []*Controller{one, two} {
			redistest.Eventually(t, what, func() bool { return want(c.Image()) })
		}
	}
	must(t, secure(t, one, "kept"))
	both("kept", func(i *metadata.Image) bool { all, _ := knows(i, "kept"); return all })
	older := f.server.Nodes[0].Snapshot(t)
	must(t, secure(t, two, "lost"))
	both("lost", func(i *metadata.Image) bool { all, _ := knows(i, "lost"); return all })
	f.server.Nodes[0].Restore(t, older)
	for name, c := range map[string]*Controller{"next one": one, "next two": two} {
		must(t, redistest.Poll(time.Minute, func() error { return secure(t, c, name) }))
	}
	both("what is there now", func(i *metadata.Image) bool {
		kept, _ := knows(i, "kept")
		_, lost := knows(i, "lost")
		next, _ := knows(i, "next one")
		also, _ := knows(i, "next two")
		return kept && lost && next && also
	})
	f.agreed(one, two)
	if a, b, c := secured(one.Image()), secured(two.Image()), secured(f.join(3).Image()); a != b || a != c {
		t.Errorf("they differ:\n%s\n%s\n%s", a, b, c)
	}
	assert.True(t, one.Image().Rules.IsSuper("User:root", ""), "the super user is gone with the end of the metadata")
}

func TestUsersRulesAndQuotasWaitForTheReplicasThatAreAskedFor(t *testing.T) {
	f := newFleet(t, redistest.Single(t), map[string]string{"min.insync.replicas": "2"})
	a := f.join(1)
	_, deleted := a.DeleteRules(t.Context(), []auth.Filter{anyRule})
	for i, errs := range [][]error{
		a.AlterUsers(t.Context(), []metadata.UserChange{setUser("a", 1, 1)}),
		a.CreateRules(t.Context(), []auth.Rule{allow("a", "t")}),
		a.AlterQuotas(t.Context(), []metadata.QuotaChange{limit("a", 1)}, false),
		deleted,
	} {
		assert.ErrorIs(t, errs[0], kerr.RequestTimedOut, "change %d without replicas", i)
	}
}
