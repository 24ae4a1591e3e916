package cluster

import (
	"testing"

	"muster/internal/redistest"
	"muster/internal/store/mem"
)

func TestTheSecretOfBrokersIsMadeOnceAndSurvivesARestart(t *testing.T) {
	s := mem.New()
	first := open(t, s, false).Image().Secret
	if len(first) < 20 {
		t.Fatalf("the secret is %q", first)
	}
	if again := open(t, s, true).Image().Secret; again != first {
		t.Errorf("after a restart the secret is %q, not %q", again, first)
	}
	if other := open(t, mem.New(), false).Image().Secret; other == first {
		t.Error("two clusters have the same secret")
	}
}

func TestBrokersOfAFleetHaveTheSameSecret(t *testing.T) {
	f := newFleet(t, redistest.Single(t), nil)
	a, b := f.join(1), f.join(2)
	if got := b.Image().Secret; got == "" || got != a.Image().Secret {
		t.Errorf("secrets %q and %q", a.Image().Secret, got)
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
			if err != nil {
				t.Fatal(err)
			}
			ids := []int64{one}
			for id := first; id < first+int64(count); id++ {
				ids = append(ids, id)
			}
			for _, id := range ids {
				if seen[id] {
					t.Fatalf("id %d was given twice", id)
				}
				seen[id] = true
			}
		}
	}
}
