package cluster

import (
	"errors"
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/metadata"
	"muster/internal/redistest"
	"muster/internal/store/mem"
)

func TestTheSecretOfBrokersIsMadeOnceAndSurvivesARestart(t *testing.T) {
	s := mem.New()
	first := open(t, s, false).Image().Secrets.Current.Text
	assert.MustTrue(t, len(first) >= 20, "the secret is %q", first)
	assert.Equal(t, open(t, s, true).Image().Secrets.Current.Text, first, "after a restart the secret")
	assert.True(t, open(t, mem.New(), false).Image().Secrets.Current.Text != first, "two clusters have the same secret")
}

func TestBrokersOfAFleetHaveTheSameSecret(t *testing.T) {
	f := newFleet(t, redistest.Single(t), nil)
	a, b := f.join(1), f.join(2)
	if got := b.Image().Secrets.Current.Text; got == "" || got != a.Image().Secrets.Current.Text {
		t.Errorf("secrets %q and %q", a.Image().Secrets.Current.Text, got)
	}
}

func TestProducerIDsForTransactionsAreNeverGivenTwice(t *testing.T) {
	s := mem.New()
	seen := map[int64]bool{}
	for range 3 {
		c := open(t, s, true)
		for range 30 {
			first, count, err := c.NextProducerIDs(t.Context())
			if err != nil || count < 1 {
				t.Fatal(count, err)
			}
			one, err := c.NextProducerID(t.Context())
			must(t, err)
			ids := []int64{one}
			for id := first; id < first+int64(count); id++ {
				ids = append(ids, id)
			}
			for _, id := range ids {
				assert.MustFalse(t, seen[id], "id %d was given twice", id)
				seen[id] = true
			}
		}
	}
}

func TestARotatedSecretIsTheSameForAllBrokers(t *testing.T) {
	f := newFleet(t, redistest.Single(t), nil)
	a, b := f.join(1), f.join(2)
	old, now := a.Image().Secrets.Current, time.UnixMilli(time.Now().UnixMilli())
	must(t, a.RotateSecret(t.Context(), now))
	want := a.Image().Secrets
	if want.Previous != old || want.Current.Number != 1 || len(want.Current.Text) < 20 || want.Current.Text == old.Text || want.First != old.Text || !want.Rotated.Equal(now) {
		t.Errorf("%+v became %#v", old.Number, []any{want.Previous == old, want.Current.Number, want.Rotated})
	}
	same := func(s metadata.Secrets) bool {
		return s.Current == want.Current && s.Previous == want.Previous && s.First == want.First && s.Rotated.Equal(want.Rotated)
	}
	redistest.Eventually(t, "the other to know", func() bool { return same(b.Image().Secrets) })
	assert.True(t, same(f.join(3).Image().Secrets), "who joins later knows another one")
	// There are never three at a time.
	var refused *metadata.Refused
	if err := b.RotateSecret(t.Context(), now.Add(metadata.SecretOverlap-1)); !errors.As(err, &refused) || !same(b.Image().Secrets) {
		t.Errorf("a rotation during a rotation: %v", err)
	}
	if err := b.RotateSecret(t.Context(), now.Add(metadata.SecretOverlap)); err != nil || b.Image().Secrets.Previous != want.Current || b.Image().Secrets.First != old.Text {
		t.Errorf("the next rotation: %v", err)
	}
}

func TestABrokerAloneHasNoSecretToRotate(t *testing.T) {
	var refused *metadata.Refused
	if err := open(t, mem.New(), false).RotateSecret(t.Context(), time.Now()); !errors.As(err, &refused) {
		t.Error(err)
	}
}
