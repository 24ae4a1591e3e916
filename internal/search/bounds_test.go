package search

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// A short pattern can stand for a very long one. What is refused and what is not is about
// what Go would make of it.
func TestPatternsThatTakeMuchMemoryAreRefused(t *testing.T) {
	for pattern, fine := range map[string]bool{
		"abc": true, "(a|b){100}": true, `^\d{4}-\d{2}.*error$`: true, "a{1000}": true,
		"(?:" + strings.Repeat(".?", 400) + "){1000}Z": false, "(?:a{100}){100}b": false, "(?:a{30}){30}b": true,
		"(?:(?:a{10}){10}b{900}){10}": false,
	} {
		if _, err := regexp.Compile(pattern); err != nil {
			continue // Go refuses it, too.
		}
		if _, err := newCondition("value", Regexp, pattern, Contains); (err == nil) != fine {
			t.Errorf("%.20s: %v", pattern, err)
		}
	}
}

// The time of a record is over for all of its texts, not for each of them.
func TestPatternsStopWhenTheTimeOfARecordIsOver(t *testing.T) {
	f := aFilter(t, Spec{Path: "$[*]", PathIs: Regexp, PathValue: "z"})
	var document any
	if err := json.Unmarshal([]byte(`["a","b","c","z"]`), &document); err != nil {
		t.Fatal(err)
	}
	asked := 0
	over := func() bool { asked++; return asked > 2 }
	if f.inDocument(document, over) || asked != 3 {
		t.Errorf("it went on, and asked %d times", asked)
	}
	if asked = -10; !f.inDocument(document, over) {
		t.Error("with time it is not found")
	}
	f = aFilter(t, Spec{Header: "h", HeaderValue: "z", HeaderIs: Regexp})
	r := &Record{Headers: []Header{{"h", []byte("a")}, {"h", []byte("b")}, {"h", []byte("z")}}}
	if asked = 1; f.hasHeader(r, over) || asked != 3 {
		t.Errorf("headers: it went on, and asked %d times", asked)
	}
}
