package config

import (
	"errors"
	"strings"
	"testing"
)

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
