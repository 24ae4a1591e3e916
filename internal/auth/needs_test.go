package auth_test

import (
	"slices"
	"testing"

	"muster/internal/assert"
	"muster/internal/auth"
	"muster/internal/handler"
)

func TestEveryKeyThatIsServedHasNeeds(t *testing.T) {
	for _, e := range handler.Table() {
		if _, known := auth.Needs(e.Key); !known {
			t.Errorf("%s (%d) is served, and the table of rights does not have it", e.Name(), e.Key)
		}
	}
	if _, known := auth.Needs(99); known {
		t.Error("a key that there is not has a line")
	}
}

func TestNeedsAreRightsThatThereAre(t *testing.T) {
	open := []int16{17, 18, 36, 71, 72}
	for _, key := range auth.NeedsKeys() {
		list, _ := auth.Needs(key)
		assert.Equal(t, len(list) == 0, slices.Contains(open, key), "%d needs %v", key, list)
		for _, n := range list {
			same := false
			for _, r := range n.AnyOf {
				assert.True(t, r.Type.Operations().Has(r.Operation), "%d needs %v, which nobody can have", key, r)
				same = same || n.Denied == nil || n.Denied == r.Type.Denied()
			}
			assert.True(t, same, "%d: %v has the error of another resource", key, n)
		}
	}
}

func TestNeedsInWords(t *testing.T) {
	for key, want := range map[int16][]string{
		0:  {"WRITE transactional id, else 53 (if it is transactional; for all)", "WRITE topic, else 29"},
		12: {"READ group, else 30"},
		16: {"DESCRIBE cluster or DESCRIBE group, else left out"},
		22: {"WRITE transactional id, else 53 (with a transactional id)", "IDEMPOTENT_WRITE cluster or WRITE topic, else 31 (without one; of topics, any will do)"},
		30: {"ALTER cluster, else 31"},
	} {
		list, _ := auth.Needs(key)
		var got []string
		for _, n := range list {
			got = append(got, n.String())
		}
		assert.EqualSlices(t, got, want, "%d", key)
	}
}
