package group

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"muster/internal/group/kind"
)

// CheckInvariants says what is wrong with the shard's state, nil if nothing is.
func (s *Shard) CheckInvariants() error {
	var wrong faults
	for _, id := range s.GroupIDs() {
		g := s.Groups[id]
		if err := cmp.Or(g.Check(), checkCommon(g)); err != nil {
			wrong.add("group %q (%s): %w", id, g.StateName(), err)
		}
	}
	was := s.TotalWeight
	if s.WeighAll(); was != s.TotalWeight {
		wrong.add("members hold %d bytes, counted are %d", s.TotalWeight, was)
	}
	s.checkTxns(&wrong)
	return wrong.first()
}

// faults is what is wrong, of which the same is told each time.
type faults []error

func (f *faults) add(format string, args ...any) { *f = append(*f, fmt.Errorf(format, args...)) }

func (f faults) first() error {
	if len(f) == 0 {
		return nil
	}
	return slices.MinFunc(f, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
}

// checkCommon says whether all of whom it is written down that they are silent are, and
// whether there is a reason for the group to be there.
func checkCommon(g kind.Group) error {
	b := g.Common()
	if b.Gone || g.IsGone() && !b.HasOffsets() {
		return errors.New("exists without record and offsets")
	}
	for _, id := range slices.Sorted(maps.Keys(b.Silences)) {
		if g.SilentSince(id) == 0 {
			return fmt.Errorf("%q is silent by a record, and is not", id)
		}
	}
	return nil
}
