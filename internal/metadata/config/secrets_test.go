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
