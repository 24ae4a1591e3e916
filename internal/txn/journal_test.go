package txn

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/journal"
	"muster/internal/machine"
)

// taken has a shard with an id whose transaction is open in so many partitions.
func taken(id string, partitions int) *Shard {
	t := topic{name: "t"}
	for i := range partitions {
		t.partitions = append(t.partitions, int32(i))
	}
	s := NewShard(DefaultConfig())
	s.Replay(machine.Stored{Records: []machine.StoredRecord{{Record: &Record{TransactionalID: id, Value: &Value{
		Producer: pair{1, 5}, Timeout: 60_000, State: Ongoing, Topics: []topic{t}, Previous: none, Next: noPair, Last: none,
	}}}}})
	return s
}

func initOf(id string) *kmsg.InitProducerIDRequest {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version, req.TransactionalID, req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = 5, &id, 60_000, none, none
	return req
}

// Who takes an id again and again, for ever, fills the journal with no more than a few
// entries a minute; the next one says how many were left out.
func TestTheJournalOfAnIDIsBounded(t *testing.T) {
	s := taken("x", 0)
	s.txns["x"].hard.State = Empty
	told, at := 0, time.Unix(100, 0)
	take := func(i int) []*journal.Txn {
		return machine.NotesOf[*journal.Txn](s.Step(machine.Input{Now: at, Event: machine.Request{ID: machine.RequestID(i + 1), ClientID: fmt.Sprint(i), Msg: initOf("x")}}).Notes)
	}
	for i := range 100 {
		told += len(take(i))
		at = at.Add(notedWithin / 200)
	}
	assert.Equal(t, told, maxNoted, "entries")
	at = at.Add(notedWithin)
	if fx := take(100); len(fx) != 1 || fx[0].LeftOut != 99-maxNoted { // The first is no one's.
		t.Errorf("a minute later: %+v", fx)
	}
	if fx := take(101); len(fx) != 1 || fx[0].LeftOut != 0 {
		t.Errorf("after that: %+v", fx)
	}
	for i := range maxNoted {
		take(200 + i)
	}
	at = at.Add(-time.Hour)
	if fx := take(102); len(fx) != 1 {
		t.Errorf("when the clock was set back: %+v", fx)
	}
}

func TestAnEntryIsBoundedInBytes(t *testing.T) {
	long := strings.Repeat("\x00", maxID)
	s := taken(long, 100_000)
	s.txns[long].clientID, s.txns[long].host = long, long
	fx := s.Step(machine.Input{Now: time.Unix(100, 0), Image: imageOf("t=1"), Event: machine.Request{ID: 1, ClientID: long, Host: long, Msg: initOf(long)}})
	told := machine.NotesOf[*journal.Txn](fx.Notes)
	assert.MustTrue(t, len(told) == 1 && told[0].Key == long && told[0].PartitionN == 100_000 && len(told[0].Partitions) == maxNamed, "%d entries", len(told))
	text, err := json.Marshal(told[0])
	assert.True(t, err == nil && len(text) <= 16<<10, "%d bytes, %v", len(text), err)
}

// When very many expire at a time the journal tells of some, and how many more.
func TestTheJournalOfIDsThatExpireIsBounded(t *testing.T) {
	s := NewShard(DefaultConfig())
	for i := range maxExpired + 7 {
		s.Replay(machine.Stored{Records: []machine.StoredRecord{{Record: &Record{TransactionalID: fmt.Sprint(i), Value: &Value{
			Producer: pair{1, 5}, Timeout: 60_000, Previous: none, Next: noPair, Last: none,
		}}}}})
	}
	at := time.Unix(0, 0).Add(2 * DefaultConfig().IDExpiration)
	s.Step(machine.Input{Now: at, Event: machine.Loaded{Epoch: 1}})
	fx := s.Step(machine.Input{Now: at, Event: machine.TimerFired{Key: machine.TimerKey{Kind: TimerExpire}, Seq: s.expireSeq}})
	told := machine.NotesOf[*journal.Txn](fx.Notes)
	if len(s.txns) != 0 || len(told) != maxExpired || told[0].LeftOut != 7 || told[1].LeftOut != 0 {
		t.Errorf("%d are left, %d entries, the first with %d left out", len(s.txns), len(told), told[0].LeftOut)
	}
}

// What is decided goes on as long as markers are missing.
func TestATransactionThatIsDecidedStillGoesOn(t *testing.T) {
	for state, want := range map[string]bool{
		"Empty": false, "Ongoing": true, "PrepareCommit": true, "PrepareAbort": true, "CompleteCommit": false, "CompleteAbort": false, "Dead": false,
	} {
		if Unfinished(state) != want {
			t.Errorf("%s goes on: %v", state, !want)
		}
	}
}
