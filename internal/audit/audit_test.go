package audit

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"muster/internal/assert"
)

var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func TestTheJSONFormIsWhatIsDocumented(t *testing.T) {
	e := Entry{
		Time: noon, Kind: Denied, Principal: "User:alice", Host: "10.0.0.1", ClientID: "app", Via: ViaKafka, Request: "Fetch", Broker: 1,
		Operation: "READ", Resources: []Resource{{Type: "topic", Name: "orders"}}, ResourceN: 1, Count: 7, Since: noon.Add(-time.Minute), LeftOut: 2,
	}
	const want = `{"time":"2026-01-31T12:00:00Z","kind":"denied","principal":"User:alice","host":"10.0.0.1","clientId":"app","via":"kafka","request":"Fetch","broker":1,` +
		`"operation":"READ","resources":[{"type":"topic","name":"orders"}],"resourceCount":1,"count":7,"since":"2026-01-31T11:59:00Z","leftOut":2}`
	text, err := json.Marshal(&e)
	assert.True(t, err == nil && string(text) == want, "%v\n%s\nwant\n%s", err, text, want)
	var back Entry
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back, e) {
		t.Errorf("%v: %+v comes back as %+v", err, e, back)
	}
	text, _ = json.Marshal(&Entry{Time: noon, Kind: Login, Via: ViaKafka})
	assert.Equal(t, string(text), `{"time":"2026-01-31T12:00:00Z","kind":"login","via":"kafka","broker":0}`, "an entry with few fields")
}

func TestEntriesAreBounded(t *testing.T) {
	long := strings.Repeat("ö", 1000)
	e := Entry{Principal: long, Host: long, ClientID: "a\xffb", Request: long, Operation: long, Mechanism: long, Reason: long}
	for range 1000 {
		e.Resources = append(e.Resources, Resource{Type: long, Name: long, Detail: long})
	}
	b := e.Bounded()
	if len(b.Resources) != maxResources || b.ResourceN != 1000 || b.ClientID != "a\uFFFDb" {
		t.Errorf("%d of %d resources, client id %q", len(b.Resources), b.ResourceN, b.ClientID)
	}
	r := b.Resources[maxResources-1]
	for i, s := range []string{b.Principal, b.Host, b.Request, b.Operation, b.Mechanism, b.Reason, r.Type, r.Name, r.Detail} {
		assert.True(t, len(s) <= maxText+len("…") && utf8.ValidString(s) && strings.HasSuffix(s, "ö…"), "text %d has %d bytes: %q", i, len(s), s)
	}
	if text, _ := json.Marshal(&b); len(text) > 32<<10 {
		t.Errorf("a bounded entry has %d bytes", len(text))
	}
	if again := b.Bounded(); again.ResourceN != 1000 {
		t.Errorf("bounded again, it counts %d resources", again.ResourceN)
	}
}

// denial is one of topic number n for someone.
func denial(who string, n int, at time.Time) Entry {
	return Entry{
		Time: at, Kind: Denied, Principal: who, Host: "h", Via: ViaKafka, Operation: "READ", Broker: 3,
		Resources: []Resource{{Type: TypeTopic, Name: fmt.Sprint("t", n)}}, ResourceN: 1,
	}
}

func TestTheFirstDenialIsToldAtOnceAndTheOthersByACountAMinute(t *testing.T) {
	c := NewCounter()
	assert.MustTrue(t, c.Add(denial("a", 1, noon)), "the first is not told at once")
	for i := range 500 {
		assert.MustFalse(t, c.Add(denial("a", 1, noon.Add(time.Duration(i)*time.Millisecond))), "number %d is told too", i)
	}
	// Another topic, another person, another operation and another host are other things.
	other := denial("a", 1, noon)
	other.Operation = "WRITE"
	far := denial("a", 1, noon)
	far.Host = "elsewhere"
	for _, e := range []Entry{denial("a", 2, noon), denial("b", 1, noon), other, far} {
		assert.True(t, c.Add(e), "%+v is not told", e)
	}
	// Another client id and another request are not.
	same := denial("a", 1, noon.Add(time.Second))
	same.ClientID, same.Request = "x", "Metadata"
	assert.False(t, c.Add(same), "another client id is told apart")
	if due := c.Due(noon.Add(window-1), false); due != nil {
		t.Errorf("before the minute is over: %+v", due)
	}
	due := c.Due(noon.Add(window), false)
	if len(due) != 1 || due[0].Count != 501 || !due[0].Since.Equal(noon) || !due[0].Time.Equal(noon.Add(time.Second)) || due[0].name() != "t1" {
		t.Fatalf("after a minute: %+v", due)
	}
	// It goes on, so it is counted on, and only that.
	assert.False(t, c.Add(denial("a", 1, noon.Add(90*time.Second))), "what goes on is told at once again")
	if due := c.Due(noon.Add(2*window-1), false); due != nil {
		t.Errorf("before the second minute is over: %+v", due)
	}
	if due := c.Due(noon.Add(2*window), false); len(due) != 1 || due[0].Count != 1 || !due[0].Since.Equal(noon.Add(window)) {
		t.Errorf("after two minutes: %+v", due)
	}
	// It was quiet for a minute, so the next one is a first one.
	if due := c.Due(noon.Add(3*window), false); due != nil || len(c.pools[Denied].kept) != 0 {
		t.Errorf("after a quiet minute: %+v, and %d are kept", due, len(c.pools[Denied].kept))
	}
	assert.True(t, c.Add(denial("a", 1, noon.Add(3*window))), "after a quiet minute the next one is not told")
}

func TestChangesAreNeverCountedTogether(t *testing.T) {
	c := NewCounter()
	counted := map[Kind]bool{Login: true, LoginFailed: true, Logout: true, Denied: true, OffsetsSet: true, RecordsDeleted: true, RecordProduced: true, TransactionEnded: true}
	for _, kind := range Kinds() {
		e := Entry{Time: noon, Kind: kind, Resources: []Resource{{Type: TypeTopic, Name: "t"}}}
		assert.True(t, c.Add(e), "the first %s is not told", kind)
		if again := c.Add(e); again == counted[kind] {
			t.Errorf("the second %s is told: %v", kind, again)
		}
	}
}

func TestWhatAPersonDoesOverHTTPIsToldEachTime(t *testing.T) {
	c := NewCounter()
	for kind, want := range map[Kind]bool{OffsetsSet: true, RecordsDeleted: true, Denied: false, RecordProduced: false} {
		e := Entry{Time: noon, Kind: kind, Via: ViaHTTP, Resources: []Resource{{Type: TypeGroup, Name: "g"}}}
		assert.True(t, c.Add(e), "the first %s is not told", kind)
		if c.Add(e) != want {
			t.Errorf("the second %s is told: %t", kind, !want)
		}
	}
}

func TestNamesThatSomebodyMakesUpTakeNoMoreThanTheirPlace(t *testing.T) {
	c := NewCounter()
	told := 0
	for i := range 20 * maxKept {
		if c.Add(denial("a", i, noon)) {
			told++
		}
	}
	p := c.pools[Denied]
	assert.True(t, told == maxKept/2 && len(p.kept) == maxKept/2, "%d of them are told, %d kept", told, len(p.kept))
	due := c.Due(noon.Add(window), false)
	if len(due) != 1 || due[0].Count != 20*maxKept-maxKept/2 || due[0].Kind != Denied || due[0].Broker != 3 || due[0].Principal != "a" || due[0].Resources != nil || due[0].Reason == "" {
		t.Errorf("what found no place is told by %+v", due)
	}
	assert.True(t, len(p.kept) == 0 && len(p.owners) == 0 && p.others == nil, "%d and %d are kept", len(p.kept), len(p.owners))
}

// TestWhoMakesUpNamesHidesNobodyElse has some make up 1,100 names every 15 s, as whom they
// may, for ten minutes.
func TestWhoMakesUpNamesHidesNobodyElse(t *testing.T) {
	c := NewCounter()
	made := 0
	for round := range 40 {
		at := noon.Add(time.Duration(round) * 15 * time.Second)
		for i := range 1100 {
			name := fmt.Sprint("User:", made)
			made++
			noise := denial("User:mallory", made, at)
			c.Add(noise)
			noise.Kind = OffsetsSet
			c.Add(noise)
			c.Add(Entry{Time: at, Kind: LoginFailed, Principal: name, Host: "10.6.6.6", Mechanism: "PLAIN"})
			if i%300 == 0 {
				noise.Kind, noise.Principal = Denied, "User:trent"
				c.Add(noise)
			}
		}
		who := fmt.Sprint("User:quiet-", round)
		for _, e := range []Entry{
			{Time: at, Kind: Login, Principal: who, Host: "10.0.0.1"},
			{Time: at, Kind: LoginFailed, Principal: who, Host: fmt.Sprint("10.0.0.", round)},
			denial(who, 1, at), denial(who, 2, at), {Time: at, Kind: RuleAdded, Principal: who},
			{Time: at, Kind: OffsetsSet, Principal: who, Resources: []Resource{{Type: TypeGroup, Name: "g"}}},
		} {
			assert.MustTrue(t, c.Add(e), "in round %d %s of %s is not told", round, e.Kind, who)
		}
		for kind, p := range c.pools {
			assert.MustTrue(t, len(p.kept) <= maxKept && len(p.owners) <= 2*maxKept, "%s: %d are kept of %d", kind, len(p.kept), len(p.owners))
		}
		for _, e := range c.Due(at, false) {
			assert.MustFalse(t, e.Count > 0 && e.Principal == "" && e.Host == "", "no one knows who it was: %+v", e)
		}
	}
}

// What finds no place is counted until its own minute is over, even if that of those who took the
// places is over sooner.
func TestWhatFoundNoPlaceIsToldThoughThePlacesAreFree(t *testing.T) {
	c := NewCounter()
	for i := range maxKept/2 + 3 {
		c.Add(denial("a", i, noon.Add(time.Duration(i)*time.Millisecond)))
	}
	begun := time.Duration(maxKept/2) * time.Millisecond
	due := c.Due(noon.Add(window+begun-1), false)
	assert.True(t, len(due) == 0 && len(c.pools[Denied].kept) == 0, "%d are kept, and told is %+v", len(c.pools[Denied].kept), due)
	due = c.Due(noon.Add(window+begun), false)
	assert.True(t, len(due) == 1 && due[0].Count == 3 && due[0].Principal == "a", "%+v", due)
	assert.Equal(t, len(c.pools[Denied].owners), 0, "owners are kept")
}

// Whose logins fail too often is told by the address that they come from: the names are made up.
func TestLoginsThatFindNoPlaceAreToldByTheirAddress(t *testing.T) {
	c := NewCounter()
	for i := range maxKept/2 + 3 {
		c.Add(Entry{Time: noon, Kind: LoginFailed, Principal: fmt.Sprint("User:", i), Host: "10.6.6.6", Mechanism: "PLAIN"})
	}
	due := c.Due(noon.Add(window), false)
	assert.True(t, len(due) == 1 && due[0].Count == 3 && due[0].Host == "10.6.6.6" && due[0].Principal == "", "%+v", due)
}

func TestMoreClientsThanThereArePlacesAreCountedTogether(t *testing.T) {
	c := NewCounter()
	for i := range maxKept + 7 {
		c.Add(denial(fmt.Sprint("User:", i), 1, noon))
	}
	due := c.Due(noon.Add(window), false)
	assert.True(t, len(due) == 1 && due[0].Count == 7 && due[0].Principal == "" && due[0].Host == "", "%+v", due)
}

func TestLoginsOfBrokersAreCountedByTheHour(t *testing.T) {
	c := NewCounter()
	e := Entry{Time: noon, Kind: Login, Principal: "Broker:muster", Host: "h", Mechanism: "X"}
	for i := range 50 {
		e.Time = noon.Add(time.Duration(i) * time.Minute)
		if told := c.Add(e); told != (i == 0) || len(c.Due(e.Time, false)) > 0 {
			t.Errorf("minute %d: told %v", i, told)
		}
	}
	if due := c.Due(noon.Add(time.Hour), false); len(due) != 1 || due[0].Count != 49 {
		t.Errorf("%+v", due)
	}
	e.Kind, e.Reason = LoginFailed, "wrong"
	c.Add(e)
	c.Add(e)
	if due := c.Due(e.Time.Add(window), false); len(due) != 1 || due[0].Count != 1 {
		t.Errorf("of those that fail: %+v", due)
	}
}

func TestWhatIsCountedIsToldWhenTheBrokerStops(t *testing.T) {
	c := NewCounter()
	for range 3 {
		c.Add(denial("b", 1, noon))
		c.Add(denial("a", 1, noon))
	}
	due := c.Due(noon, true)
	assert.True(t, len(due) == 2 && due[0].Principal == "a" && due[0].Count == 2 && due[1].Principal == "b", "at the end: %+v", due)
}

func TestAClockThatIsSetBackDoesNotSilenceTheLog(t *testing.T) {
	c := NewCounter()
	c.Add(denial("a", 1, noon))
	c.Add(denial("a", 1, noon))
	if due := c.Due(noon.Add(-time.Hour), false); len(due) != 1 || due[0].Count != 1 {
		t.Errorf("an hour before: %+v", due)
	}
}

func TestLinesSayWhoDidWhat(t *testing.T) {
	orders := []Resource{{Type: TypeTopic, Name: "orders", Detail: "3 partitions"}}
	for _, c := range []struct {
		e    Entry
		want string
	}{
		{
			Entry{Kind: TopicCreated, Principal: "User:alice", Host: "10.0.0.1", ClientID: "app", Request: "CreateTopics", Resources: orders},
			"User:alice at 10.0.0.1 (app) created topic orders (3 partitions) by CreateTopics",
		},
		{
			Entry{Time: noon, Kind: Denied, Principal: "User:bob", Host: "h", Operation: "READ", Request: "Fetch", Resources: []Resource{{Type: "transactional_id", Name: "x"}}, Count: 12, Since: noon.Add(-time.Minute)},
			"User:bob at h was denied READ on transactional id x by Fetch; 12 times in 1m",
		},
		{
			Entry{Kind: LoginFailed, Principal: "User:eve", Host: "h", Request: "SaslAuthenticate", Mechanism: "PLAIN", Reason: "wrong password", LeftOut: 1},
			"User:eve at h failed to log in by PLAIN: wrong password (1 entry before this one is missing)",
		},
		{Entry{Kind: Denied, Count: 2, Time: noon, Since: noon}, "more clients than can be named: denied; 2 times in 1s"},
		{Entry{Kind: "later", Host: "h"}, "an unknown client at h later"},
		{Entry{Kind: Login, Principal: "User:a\nb", Host: "h\x1b[2J", Mechanism: "X"}, `"User:a\nb" at "h\x1b[2J" logged in by X`},
		{
			Entry{Kind: TopicDeleted, Principal: "User:a", Resources: slices.Repeat([]Resource{{Type: TypeTopic, Name: "a"}}, 4), ResourceN: 9},
			"User:a deleted topic a, topic a, topic a and 6 more",
		},
	} {
		assert.Equal(t, c.e.Line(), c.want)
	}
	for _, k := range Kinds() {
		assert.True(t, did[k] != "", "%s has no words", k)
	}
}

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
		assert.MustTrue(t, err == nil && len(text) <= 12*9*maxText, "%d bytes, %v", len(text), err)
		var back Entry
		if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back, e) {
			t.Fatalf("%+v comes back as %+v (%v)", e, back, err)
		}
		// Entries of a topic may be anybody's, and are not bounded by us.
		for _, e := range []Entry{e, {Kind: Kind(kind), Principal: who, Host: host, ClientID: client, Reason: reason, Resources: []Resource{{Type: name}}}} {
			line := e.Line()
			assert.MustTrue(t, utf8.ValidString(line) && !strings.ContainsFunc(line, func(c rune) bool { return !unicode.IsPrint(c) }), "%+v: %q", e, line)
		}
	})
}
