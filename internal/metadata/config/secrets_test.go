package config

import (
	"errors"
	"strings"
	"testing"
)

func TestReferencesAreReplacedInAnyValue(t *testing.T) {
	kinds := map[string]Lookup{
		"env":  func(name string) (string, error) { return "<" + name + ">", nil },
		"file": func(string) (string, error) { return "${env:AGAIN}", nil },
	}
	for value, want := range map[string]string{
		"plain":                      "plain",
		"${env:A}":                   "<A>",
		"name:${env:A}-${env:B_2}":   "name:<A>-<B_2>",
		"${file:/run/secrets/p}":     "${env:AGAIN}",
		"a${b and $1 and ${} and $$": "a${b and $1 and ${} and $$",
	} {
		got, err := Resolve(map[string]string{"x": value}, kinds)
		if err != nil || got["x"] != want {
			t.Errorf("%s is %q (%v), want %q", value, got["x"], err, want)
		}
	}
}

func TestReferencesThatStandForNothingAreRefused(t *testing.T) {
	missing := errors.New("it is not set")
	kinds := map[string]Lookup{"env": func(string) (string, error) { return "", missing }}
	if _, err := Resolve(map[string]string{"super.users": "a", "x": "${env:PW}"}, kinds); !errors.Is(err, missing) || !strings.Contains(err.Error(), "x: ${env:PW}") {
		t.Errorf("missing: %v", err)
	}
	if _, err := Resolve(map[string]string{"x": "${evn:PW}"}, kinds); err == nil || !strings.Contains(err.Error(), "neither") {
		t.Errorf("misspelt: %v", err)
	}
}

// Whatever a value says, what is kept elsewhere is put into it once, is not searched for
// more, and stands in no error.
func FuzzResolve(f *testing.F) {
	f.Add("admin:${env:PW}", "secret")
	f.Add("${file:/a}${env:}${env:A", "${env:PW}")
	f.Add("${evn:PW} ${env:missing}", "}")
	f.Fuzz(func(t *testing.T, value, secret string) {
		asked := 0
		lookup := func(name string) (string, error) {
			asked++
			if name == "missing" {
				return secret, errors.New("it is not set")
			}
			return "<" + secret + ">", nil
		}
		got, err := Resolve(map[string]string{"x": value}, map[string]Lookup{"env": lookup, "file": lookup})
		switch {
		case err != nil && (got != nil || !strings.HasPrefix(err.Error(), "x: ")):
			t.Fatalf("%q: %q, %v", value, got, err)
		case err != nil:
			if bare := strings.ReplaceAll(err.Error(), value, ""); len(secret) > 40 && !strings.Contains(value, secret) && strings.Contains(bare, secret) {
				t.Fatalf("%q: the error tells the secret: %v", value, err)
			}
		case HasReference(value) != (asked > 0):
			t.Fatalf("%q: %d were looked up", value, asked)
		case asked == 0 && got["x"] != value:
			t.Fatalf("%q became %q", value, got["x"])
		case strings.Count(got["x"], "<"+secret+">") < asked:
			t.Fatalf("%q became %q with %d of %q", value, got["x"], asked, secret)
		}
	})
}
