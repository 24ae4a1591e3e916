package harness

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// Args are the arguments of a command. The first word of a request is the client.
type Args struct {
	T testing.TB
	D *datadriven.TestData
	// Resolve gives names in texts a meaning. Optional.
	Resolve func(string) string
}

// Who is the first word.
func (a Args) Who() string { return a.D.CmdArgs[0].Key }

// Text is what name=text says; commas are part of it.
func (a Args) Text(name, otherwise string) string {
	for _, c := range a.D.CmdArgs {
		if c.Key == name && len(c.Vals) > 0 {
			text := strings.Join(c.Vals, ",")
			if a.Resolve != nil {
				text = a.Resolve(text)
			}
			return text
		}
	}
	return otherwise
}

// Flag says whether a word is there that has no value.
func (a Args) Flag(name string) bool {
	return slices.ContainsFunc(a.D.CmdArgs, func(c datadriven.CmdArg) bool { return c.Key == name && len(c.Vals) == 0 })
}

// Number is what name=7 says; name= is as if it were not there.
func (a Args) Number(name string, otherwise int) int {
	if v := a.Text(name, ""); v != "" {
		return ParseInt(a.T, v)
	}
	return otherwise
}

// Duration is what name=10s says.
func (a Args) Duration(name, otherwise string) time.Duration {
	return ParseDuration(a.T, a.Text(name, otherwise))
}

// Millis is a duration as requests have it.
func (a Args) Millis(name, otherwise string) int32 {
	return int32(a.Duration(name, otherwise).Milliseconds())
}

// List is what name=(a,b) says, nil if it is not given.
func (a Args) List(name string) []string {
	for _, c := range a.D.CmdArgs {
		if c.Key == name {
			return c.Vals
		}
	}
	return nil
}

// ParseDuration reads a duration.
func ParseDuration(t testing.TB, v string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(v)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// ParseInt reads a number.
func ParseInt(t testing.TB, v string) int {
	t.Helper()
	n, err := strconv.Atoi(v)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
