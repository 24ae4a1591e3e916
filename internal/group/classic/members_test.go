package classic

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"muster/internal/group/kind"
)

// Small and large groups look members up in different ways, and change from one
// to the other as members come and go. None may notice.
func TestMemberListFindsMembersInGroupsOfEverySize(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var l memberList
	var model []*Member // what the list must be
	for i := range 5000 {
		most := 3 * smallGroup * (i / 500 % 2) // Grows for a while, then shrinks.
		switch {
		case len(model) > 0 && r.IntN(4) == 0:
			m := model[r.IntN(len(model))]
			id := m.ID + "'"
			old := m.ID
			l.rename(m, id)
			if l.Get(old) != nil {
				t.Fatalf("%d: %q is still found under its old id", i, old)
			}
		case len(model) <= r.IntN(most+1):
			m := &Member{ID: fmt.Sprint("m", i)}
			if r.IntN(2) == 0 {
				instance := fmt.Sprint("i", i)
				m.Instance = &instance
			}
			l.Add(m)
			model = append(model, m)
		case len(model) > 0:
			at := r.IntN(len(model))
			gone := model[at]
			l.remove(gone)
			model = slices.Delete(model, at, at+1)
			if l.Get(gone.ID) != nil || gone.Instance != nil && l.static(*gone.Instance) != nil {
				t.Fatalf("%d: %q is still found", i, gone.ID)
			}
		}
		checkList(t, i, &l, model)
	}
}

func checkList(t *testing.T, i int, l *memberList, model []*Member) {
	t.Helper()
	var listed []*Member
	for m := l.First; m != nil; m = m.Next {
		listed = append(listed, m)
	}
	if !slices.Equal(listed, model) || l.Len() != len(model) {
		t.Fatalf("%d: the list has %d members, or others than %d", i, l.Len(), len(model))
	}
	if (l.byID != nil) != (len(model) > smallGroup) {
		t.Fatalf("%d: %d members, with a map %t", i, len(model), l.byID != nil)
	}
	for _, m := range model {
		if l.Get(m.ID) != m || m.Instance != nil && l.static(*m.Instance) != m {
			t.Fatalf("%d: %q is not found", i, m.ID)
		}
	}
}

func TestTallyCountsFewAndManyNames(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var counts kind.Tally
	model := map[string]int{}
	for i := range 5000 {
		name := fmt.Sprint(r.IntN(1 + 2*kind.SmallTally*(i/500%2)))
		n := 1
		if model[name] > 0 && r.IntN(2) == 0 {
			n = -1
		}
		counts.Add(name, n)
		if model[name] += n; model[name] == 0 {
			delete(model, name)
		}
		if counts.Len() != len(model) {
			t.Fatalf("%d: %d names, want %d", i, counts.Len(), len(model))
		}
		for name, want := range model {
			if got := counts.Of(name); got != want {
				t.Fatalf("%d: %d of %s, want %d", i, got, name, want)
			}
		}
	}
	if counts.Of("nobody's") != 0 {
		t.Error("somebody supports what nobody does")
	}
}
