package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func whoIs(name string) Who {
	return Who{Member: name + "-id", ClientID: name, Host: "10.0.0.1", Instance: name + "-1"}
}

// entries are one in which nearly every field is set, one in which none is, and one
// with what an assignment adds that is too large.
func entries() []Entry {
	b := whoIs("b")
	full := Entry{
		Time: time.Date(2026, 1, 31, 12, 0, 0, 5, time.UTC), Group: "billing", Kind: KindSettled, State: "Stable", Generation: 7, Protocol: "range",
		Triggers: []Trigger{{
			Kind: TriggerExpired, Who: whoIs("a"), Reason: "gone", Was: "a-0", Silent: 45 * time.Second, New: true, By: &b,
			Change: &Change{
				TopicsAdded: []string{"orders"}, TopicsAddedN: 1, TopicsRemoved: []string{"users"}, TopicsRemovedN: 2,
				Protocols: []string{"range"}, ProtocolsBefore: []string{"sticky"}, Owned: true, Other: true, Forgotten: true,
			},
			Request: "Heartbeat", Parked: true,
		}, {Kind: TriggerJoined}},
		TriggerN: 3, Started: time.Date(2026, 1, 31, 11, 59, 0, 0, time.UTC), JoinPhase: time.Second, SyncPhase: 2 * time.Second,
		Slowest: []Late{{Who: b, Waited: time.Second}}, Missed: []Absent{{Who: b, Pending: true, Kept: true}}, MissedN: 2,
		Waiting: []Absent{{}}, WaitingN: 4, Leader: &b, Before: 2, After: 3,
		Moves: []Move{{Topic: "orders", Partition: 1, From: "a-id", To: "b-id"}, {Topic: "users"}}, MoveN: 5, PartitionN: 8,
		Cause: CauseTopics, By: &b, Topics: []TopicCount{{Topic: "orders", Partitions: 3, Back: 1, Forward: 2}}, TopicN: 6,
	}
	refused := Entry{Kind: KindStarted, Triggers: []Trigger{{Kind: TriggerTooLarge, Bytes: 9, MaxBytes: 8}}}
	suspected := Entry{Group: "billing", Kind: KindSuspected, State: "Stable", Suspects: []Suspect{{Topic: "orders", Partition: 3, Committed: 4711, End: 5210, Deaths: 3}}, SuspectN: 2}
	reset := Entry{Group: "billing", Kind: KindOffsetsReset, State: "Stable", Reset: &Reset{Plan: "r1", Method: ResetWithhold, Reason: "why", Moved: []Moved{{Topic: "orders", Partition: 3, Before: -1, After: 4711}}}}
	return []Entry{full, {}, refused, consumerEntry(), suspected, reset}
}

// consumerEntry is one in which all is set that only consumer groups have.
func consumerEntry() Entry {
	a, b := whoIs("a"), whoIs("b")
	revoke := Revoke{Who: a, Parts: []Parts{{Topic: "orders", Partitions: []int32{2, 3}}}, PartN: 2, For: []Who{b}, ForN: 1, Timeout: time.Minute, Held: time.Second}
	return Entry{
		Group: "billing", Kind: KindTarget, State: "Reconciling", Generation: 3, Type: TypeConsumer, TargetEpoch: 3, Protocol: "range", ProtocolBefore: "uniform",
		Triggers: []Trigger{
			{Kind: TriggerNotRevoked, Who: a, Had: 4, Revoke: &revoke},
			{Kind: TriggerRegex, Who: b, Change: &Change{Regex: "o.*", RegexBefore: "p.*"}},
			{Kind: TriggerTopics, Topics: &TopicChanges{List: []TopicChange{{Topic: "orders", Kind: TopicGrown, Before: 2, After: 4}}, N: 2}},
		},
		TriggerN: 3, Shares: []Share{{Who: b, Before: 0, After: 2}}, ShareN: 2, Revokes: []Revoke{revoke}, RevokeN: 1,
		Held: []Late{{Who: a, Waited: time.Second}},
	}
}

// Other programs read the topic, and journals outlive the broker that wrote
// them: testdata/entries.json is what is out there.
func TestEntriesKeepTheirFormOnTheWire(t *testing.T) {
	golden, err := os.ReadFile("testdata/entries.json")
	if err != nil {
		t.Fatal(err)
	}
	var written bytes.Buffer
	for _, e := range entries() {
		line, err := json.Marshal(&e)
		if err != nil {
			t.Fatal(err)
		}
		written.Write(append(line, '\n'))
	}
	if !bytes.Equal(written.Bytes(), golden) {
		t.Errorf("entries are written as\n%s\nand not as\n%s", written.Bytes(), golden)
	}
	lines := json.NewDecoder(bytes.NewReader(golden))
	for i, want := range entries() {
		var got Entry
		if err := lines.Decode(&got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("entry %d is read as %+v, want %+v", i, got, want)
		}
	}
}

// What kinds are called is part of the form.
func TestKindsKeepTheirNames(t *testing.T) {
	for _, c := range []struct{ got, want any }{
		{[]EntryKind{KindStarted, KindSettled, KindReplaced, KindFenced, KindLoaded, KindDeleted}, []EntryKind{"rebalance-started", "rebalance-settled", "static-member-replaced", "static-member-fenced", "group-loaded", "group-deleted"}},
		{[]EntryKind{KindOffsetsExpired, KindOffsetsDeleted, KindOffsetsReset}, []EntryKind{"offsets-expired", "offsets-deleted", "offsets-reset"}},
		{[]EntryKind{KindSuspected}, []EntryKind{"poison-suspected"}},
		{[]EntryKind{KindResetStarted, KindResetDropped}, []EntryKind{"reset-started", "reset-not-applied"}},
		{[]ResetMethod{ResetRebalance, ResetWithhold, ResetRemove}, []ResetMethod{"rebalance", "withhold", "remove"}},
		{[]EntryKind{KindEpoch, KindTarget, KindUpgraded, KindDowngraded}, []EntryKind{"group-epoch-raised", "target-assigned", "group-upgraded", "group-downgraded"}},
		{[]TriggerKind{TriggerNotRevoked, TriggerRegex, TriggerTopics, TriggerNoJoin, TriggerConflict, TriggerUnreleased, TriggerInitialized, TriggerReset}, []TriggerKind{"not-revoked", "regex", "topics", "no-join", "conflict", "unreleased", "initialized", "reset"}},
		{[]TopicChangeKind{TopicCreated, TopicGrown, TopicDeleted, TopicRecreated}, []TopicChangeKind{"created", "grown", "deleted", "recreated"}},
		{[]Cause{CauseRequest, CauseExpired, CauseTopics}, []Cause{"request", "expired", "topics-deleted"}},
		{
			[]TriggerKind{TriggerJoined, TriggerChanged, TriggerLeader, TriggerLeft, TriggerRemoved, TriggerExpired, TriggerNoSync, TriggerReplaced, TriggerMaxSize, TriggerFenced, TriggerTooLarge, TriggerResumed},
			[]TriggerKind{"joined", "changed", "leader", "left", "removed", "expired", "no-sync", "replaced", "max-size", "fenced", "too-large", "resumed"},
		},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%v, want %v", c.got, c.want)
		}
	}
}

// A member's standing goes through the tagged fields as it is; one that has nothing to
// say takes no room.
func TestStandingsKeepTheirFormOnTheWire(t *testing.T) {
	none := 0
	want := MemberStatus{
		Assignor: "range", Matches: &none, Revoking: []Parts{{Topic: "orders", Partitions: []int32{1}}}, Waits: true,
		Since: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC), Until: time.Date(2026, 1, 31, 12, 1, 0, 0, time.UTC),
		Heard: time.Date(2026, 1, 31, 12, 0, 1, 0, time.UTC), Session: time.Date(2026, 1, 31, 12, 0, 46, 0, time.UTC),
	}
	var tags kmsg.Tags
	want.Set(&tags)
	tags.Each(func(tag uint32, b []byte) {
		if got := fmt.Sprintf("%d %s", tag, b); got != `10004 {"assignor":"range","matches":0,"revoking":[{"topic":"orders","partitions":[1]}],"waits":true,"since":"2026-01-31T12:00:00Z","until":"2026-01-31T12:01:00Z","heard":"2026-01-31T12:00:01Z","session":"2026-01-31T12:00:46Z"}` {
			t.Errorf("it is written as %s", got)
		}
	})
	if got := MemberStatusOf(&tags); got == nil || !reflect.DeepEqual(*got, want) {
		t.Errorf("it is read as %+v", got)
	}
	var empty kmsg.Tags
	(&MemberStatus{}).Set(&empty)
	if empty.Len() > 0 || MemberStatusOf(&empty) != nil {
		t.Error("nothing to say takes room")
	}
}

// lengthen makes all texts of a value long, and returns how long they are together.
func lengthen(v reflect.Value) (n int) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() {
			v.SetString(strings.Repeat("x", 10_000))
			return 10_000
		}
	case reflect.Pointer:
		if !v.IsNil() {
			return lengthen(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			n += lengthen(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			n += lengthen(v.Field(i))
		}
	}
	return n
}

// What waits to be written is bounded by it, and clients choose most of the texts.
func TestTheSizeOfAnEntryHasAllItsTexts(t *testing.T) {
	for i, e := range entries() {
		if texts := lengthen(reflect.ValueOf(&e)); e.Size() < texts || e.Size() > texts+16<<10 {
			t.Errorf("entry %d has %d bytes of texts, and is said to take %d", i, texts, e.Size())
		}
	}
	x := Txn{Key: "k", ID: "i", Kind: TxnFenced, Holder: &Holder{"c", "h"}, By: &Holder{"c", "h"}, Request: "r", Partitions: []string{"a", "b"}}
	if texts := lengthen(reflect.ValueOf(&x)); x.Size() < texts {
		t.Errorf("a transaction has %d bytes of texts, and is said to take %d", texts, x.Size())
	}
}

// The hashes are Java's String.hashCode; the partition is Kafka's.
func TestPartitionForIsJavasHashOfTheGroupID(t *testing.T) {
	for _, c := range []struct {
		id        string
		partition int32
	}{
		{"", 0},       // hash 0
		{"a", 47},     // 97
		{"Aa", 12},    // 2112, as
		{"BB", 12},    // this one
		{"hello", 22}, // 99162322
		{"connect-cluster", 13},
		{"console-consumer-12345", 6},
		{"my-group", 12}, // -1906497762: the sign is dropped
		{"группа", 8},    // over UTF-16 code units, not bytes
		{"日本", 47},
		{"😀", 49}, // two units, 0xD83D and 0xDE00
		{"group-😀-x", 2},
		{"\U0010FFFF", 32},
		// Integer.MIN_VALUE, which has no absolute value: Kafka takes 0.
		{"polygenelubricants", 0}, {"GydZG_", 0}, {"DESIGNING WORKHOUSES", 0},
	} {
		if got := PartitionFor(c.id, 50); got != c.partition {
			t.Errorf("PartitionFor(%q, 50) = %d, want %d", c.id, got, c.partition)
		}
	}
	if got := PartitionFor("hello", 7); got != 99162322%7 {
		t.Errorf("of 7 partitions: %d", got)
	}
}

func FuzzPartitionForIsInRange(f *testing.F) {
	f.Add("polygenelubricants", int32(50))
	f.Add("\xff\xfe", int32(1))
	f.Fuzz(func(t *testing.T, id string, partitions int32) {
		if partitions <= 0 {
			return
		}
		if got := PartitionFor(id, partitions); got < 0 || got >= partitions {
			t.Errorf("PartitionFor(%q, %d) = %d", id, partitions, got)
		}
	})
}

// What is told of a group of a kind to come is told as of those that have epochs.
func TestTheCoordinatorAssignsInAllButClassicGroups(t *testing.T) {
	for groupType, want := range map[string]bool{"": false, TypeClassic: false, TypeConsumer: true, "share": true} {
		if Assigns(groupType) != want {
			t.Errorf("in a group of type %q it assigns: %t", groupType, !want)
		}
	}
}
