package words

import "strings"

// minPrefix is how much of a name one must have for it to be recognized.
const minPrefix = 6

// Nearest returns the known name that takes the fewest edits to reach, if that
// is few enough to be a slip, or one that was cut short; "" if there is none.
func Nearest(name string, known []string) string {
	best, least := "", len(name)/3+2
	if len(name) < 4 {
		least = 2 // Two of three letters are no slip.
	}
	for _, k := range known {
		if len(k)-len(name) >= least && !strings.HasPrefix(k, name) || len(name)-len(k) >= least {
			continue
		}
		d := 1
		if len(name) < minPrefix || !strings.HasPrefix(k, name) {
			d = editDistance(name, k)
		}
		if d < least {
			best, least = k, d
		}
	}
	return best
}

// DidYouMean is the end of a sentence that refuses a name: the nearest known one, if there
// is one.
func DidYouMean(name string, known []string) string {
	if near := Nearest(name, known); near != "" && near != name {
		return "; did you mean \"" + near + "\"?"
	}
	return ""
}

// editDistance counts the insertions, deletions and replacements that turn a
// into b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
