package group

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// Small and large groups look members up in different ways, and change from one
// to the other as members come and go. None may notice.
func TestMemberListFindsMembersInGroupsOfEverySize(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var l memberList
	var model []*member // what the list must be
	for i := range 5000 {
		most := 3 * smallGroup * (i / 500 % 2) // Grows for a while, then shrinks.
		switch {
		case len(model) > 0 && r.IntN(4) == 0:
			m := model[r.IntN(len(model))]
			id := m.id + "'"
			old := m.id
			l.rename(m, id)
			if l.get(old) != nil {
				t.Fatalf("%d: %q is still found under its old id", i, old)
			}
		case len(model) <= r.IntN(most+1):
			m := &member{id: fmt.Sprint("m", i)}
			if r.IntN(2) == 0 {
				instance := fmt.Sprint("i", i)
				m.instance = &instance
			}
			l.add(m)
			model = append(model, m)
		case len(model) > 0:
			at := r.IntN(len(model))
			gone := model[at]
			l.remove(gone)
			model = slices.Delete(model, at, at+1)
			if l.get(gone.id) != nil || gone.instance != nil && l.static(*gone.instance) != nil {
				t.Fatalf("%d: %q is still found", i, gone.id)
			}
		}
		checkList(t, i, &l, model)
	}
}

func checkList(t *testing.T, i int, l *memberList, model []*member) {
	t.Helper()
	var listed []*member
	for m := l.first; m != nil; m = m.next {
		listed = append(listed, m)
	}
	if !slices.Equal(listed, model) || l.len() != len(model) {
		t.Fatalf("%d: the list has %d members, or others than %d", i, l.len(), len(model))
	}
	if (l.byID != nil) != (len(model) > smallGroup) {
		t.Fatalf("%d: %d members, with a map %t", i, len(model), l.byID != nil)
	}
	for _, m := range model {
		if l.get(m.id) != m || m.instance != nil && l.static(*m.instance) != m {
			t.Fatalf("%d: %q is not found", i, m.id)
		}
	}
}

func TestTallyCountsFewAndManyNames(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var counts tally
	model := map[string]int{}
	for i := range 5000 {
		name := fmt.Sprint(r.IntN(1 + 2*smallTally*(i/500%2)))
		n := 1
		if model[name] > 0 && r.IntN(2) == 0 {
			n = -1
		}
		counts.add(name, n)
		if model[name] += n; model[name] == 0 {
			delete(model, name)
		}
		if counts.len() != len(model) {
			t.Fatalf("%d: %d names, want %d", i, counts.len(), len(model))
		}
		for name, want := range model {
			if got := counts.of(name); got != want {
				t.Fatalf("%d: %d of %s, want %d", i, got, name, want)
			}
		}
	}
	if counts.of("nobody's") != 0 {
		t.Error("somebody supports what nobody does")
	}
}
