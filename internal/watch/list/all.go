package list

import "iter"

// All returns all groups in order of name. No one may change them.
func (x *Index) All() iter.Seq[*GroupRow] {
	return func(yield func(*GroupRow) bool) {
		for _, s := range x.groups {
			if !yield(s) {
				return
			}
		}
	}
}
