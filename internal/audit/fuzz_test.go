package audit

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

// Names, client ids and reasons are strangers' words. In an entry they are short, in its
// JSON they come back as they are, and in its line they are neither another line nor
// anything that steers a terminal.
func FuzzEntry(f *testing.F) {
	f.Add("login-failed", "User:alice", "10.0.0.1", "app", "orders", "SCRAM-SHA-256: no such user", 3, int64(60))
	f.Add("\x1b[2J", "a\nb", "\xff\u2028", "", "\u202e", strings.Repeat("ö", 300), -1, int64(-1))
	f.Fuzz(func(t *testing.T, kind, who, host, client, name, reason string, count int, seconds int64) {
		e := Entry{
			Time: noon, Kind: Kind(cut(kind)), Principal: who, Host: host, ClientID: client, Via: ViaKafka, Mechanism: client, Operation: kind,
			Reason: reason, Resources: []Resource{{Type: kind, Name: name, Detail: reason}}, Count: count, Since: noon.Add(-time.Duration(seconds % 1e6)),
		}.Bounded()
		text, err := json.Marshal(&e)
		if err != nil || len(text) > 12*9*maxText {
			t.Fatalf("%d bytes, %v", len(text), err)
		}
		var back Entry
		if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back, e) {
			t.Fatalf("%+v comes back as %+v (%v)", e, back, err)
		}
		// Entries of a topic may be anybody's, and are not bounded by us.
		for _, e := range []Entry{e, {Kind: Kind(kind), Principal: who, Host: host, ClientID: client, Reason: reason, Resources: []Resource{{Type: name}}}} {
			line := e.Line()
			if !utf8.ValidString(line) || strings.ContainsFunc(line, func(c rune) bool { return !unicode.IsPrint(c) }) {
				t.Fatalf("%+v: %q", e, line)
			}
		}
	})
}
