package auth

import (
	"encoding/hex"
	"os"
	"strconv"
	"strings"
	"testing"

	"muster/internal/assert"
)

// lines reads what testdata/Goldens.java wrote: fields between tabs.
func lines(t *testing.T, file string) [][]string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + file)
	assert.Must(t, err)
	var out [][]string
	for line := range strings.Lines(string(b)) {
		out = append(out, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	assert.MustTrue(t, len(out) >= 100, "only %d lines", len(out))
	return out
}

func unhex(t *testing.T, s string) string {
	t.Helper()
	b, err := hex.DecodeString(s)
	assert.Must(t, err)
	return string(b)
}

func TestSubjectNamesAreWrittenAsJavaWritesThem(t *testing.T) {
	for _, f := range lines(t, "names.txt") {
		got, err := SubjectName([]byte(unhex(t, f[0])))
		if err != nil {
			t.Errorf("%s: %v, but Java says %s", f[0], err, f[2])
		} else if want := unhex(t, f[1]); got != want {
			t.Errorf("%s: %q, but Java says %q", f[0], got, want)
		}
	}
}

// onlyHere lists what Kafka takes at start, and muster refuses there.
var onlyHere = map[string]string{
	"":                    "Kafka starts, and no certificate has a principal",
	"RULE:^CN=(.*)$/$1$/": "Kafka starts, and refuses every certificate",
	"RULE:^CN=.*$/$1/":    "Kafka starts, and refuses every certificate",
}

func TestMappingRulesAreAppliedAsKafkaAppliesThem(t *testing.T) {
	applied := 0
	for _, f := range lines(t, "mapping.txt") {
		rules := unhex(t, f[0])
		m, err := ParseMapping(rules)
		if _, only := onlyHere[rules]; only || f[1] == "invalid" {
			assert.Error(t, err, "%q is taken", rules)
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", rules, err)
			continue
		}
		name := unhex(t, f[1])
		got, err := m.Principal(name)
		switch want := User(unhex(t, f[3])); {
		case f[2] != "ok" && err == nil:
			t.Errorf("%q makes %q of %q, but to Kafka it %s", rules, got, name, f[2])
		case f[2] != "ok":
		case want == "User:" && err == nil:
			t.Errorf("%q makes %q of %q", rules, got, name)
		case strings.Contains(string(want), "?"): // Java finds nothing twice in the middle of a character.
		case want == "User:" || err != nil && strings.Contains(err.Error(), "no simple other case"):
		case err != nil:
			t.Errorf("%q with %q: %v, but Kafka makes it %q", rules, name, err, want)
		case got != want:
			t.Errorf("%q makes %q of %q, but Kafka %q", rules, got, name, want)
		default:
			applied++
		}
	}
	assert.True(t, applied >= 300, "only %d names were mapped", applied)
}

// The decisions are those of Kafka's own authorizer.
func TestTheIndexDecidesAsKafkasAuthorizer(t *testing.T) {
	number := func(s string) int8 {
		n, err := strconv.ParseInt(s, 10, 8)
		assert.Must(t, err)
		return int8(n)
	}
	var x *Index
	asked := 0
	for i, f := range lines(t, "decisions.txt") {
		switch f[0] {
		case "world":
			x = New(Policy{SuperUsers: []Principal{"User:root"}, AllowEveryone: f[1] == "true"})
		case "rule":
			r, err := Rule{
				Type: ResourceType(number(f[1])), Pattern: PatternType(number(f[2])), Name: f[3], Principal: Principal(f[4]), Host: f[5],
				Operation: Operation(number(f[6])), Permission: Permission(number(f[7])),
			}.Check()
			assert.Must(t, err)
			edit := x.Edit()
			edit.Add(r)
			x = edit.Index()
		case "ask":
			asked++
			q := Request{Type: ResourceType(number(f[1])), Name: f[2], Principal: User(f[3]), Host: f[4], Operation: Operation(number(f[5]))}
			if got := x.Allows(q); strconv.FormatBool(got) != f[6] {
				t.Errorf("line %d: %+v: %t, but Kafka says %s", i+1, q, got, f[6])
			}
			// Where READ allows to DESCRIBE, Kafka does not count it for any resource. It
			// is asked for WRITE only.
			if q.Operation == Describe || q.Operation == DescribeConfigs {
				continue
			}
			if got := x.AnyOf(q); strconv.FormatBool(got) != f[7] {
				t.Errorf("line %d: any of %+v: %t, but Kafka says %s", i+1, q, got, f[7])
			}
		}
	}
	assert.True(t, asked >= 1000, "only %d questions", asked)
}
