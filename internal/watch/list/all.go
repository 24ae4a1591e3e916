package list

import "iter"

// All returns all groups in order of name. Nobody may change them.
func (x *Index) All() iter.Seq[*Summary] {
	return func(yield func(*Summary) bool) {
		for _, s := range x.groups {
			if !yield(s) {
				return
			}
		}
	}
}
