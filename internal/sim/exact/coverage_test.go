package exact

import (
	"fmt"
	"maps"
	"slices"
)

// enough is how often things must happen in 1,000 seeds, about a third of how
// often they do. A simulator in which they do not happen checks nothing.
var enough = Counts{}

// lacking says what did not happen often enough in a number of seeds. Of what is
// rare, a short run proves nothing.
func lacking(seen Counts, seeds int) []string {
	var out []string
	for _, what := range slices.Sorted(maps.Keys(enough)) {
		if want := enough[what] * seeds / 1000; seen[what] < want {
			out = append(out, fmt.Sprintf("%q happened %d times in %d seeds, not %d", what, seen[what], seeds, want))
		}
	}
	return out
}
