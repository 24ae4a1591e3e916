package txn

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/harness"
	"muster/internal/journal"
	"muster/internal/machine"
)

func (p pair) String() string { return fmt.Sprintf("%d/%d", p.id, p.epoch) }

// since shows a time as how long after the beginning it is.
func (s *scenario) since(millis int64) string { return time.UnixMilli(millis).Sub(s.Start).String() }

func (s *scenario) showRecord(r machine.Record) string {
	rec := r.(*Record)
	if rec.Value == nil {
		return rec.TransactionalID + " tombstone"
	}
	return fmt.Sprintf("%s %s", rec.TransactionalID, s.showValue(rec.Value))
}

func (s *scenario) showValue(v *Value) string {
	out := fmt.Sprintf("%s %s", v.State, v.Producer)
	if v.Timeout != 60_000 {
		out += fmt.Sprintf(" timeout=%s", time.Duration(v.Timeout)*time.Millisecond)
	}
	if v.Next != noPair {
		out += fmt.Sprintf(" next=%s", v.Next)
	}
	if v.Previous != none {
		out += fmt.Sprintf(" previous=%d", v.Previous)
	}
	if v.Last != none {
		out += fmt.Sprintf(" last=%d", v.Last)
	}
	if v.Version != 0 {
		out += fmt.Sprintf(" tv%d", v.Version)
	}
	if v.Start != none {
		out += " start=" + s.since(v.Start)
	}
	return out + showTopics(v.Topics)
}

// showEntry shows an entry of the journal as what it is in JSON, which must say the same.
func (s *scenario) showEntry(e *journal.Txn) string {
	text, err := json.Marshal(e)
	again := journal.Txn{Key: e.Key}
	if err2 := json.Unmarshal(text, &again); err != nil || err2 != nil || !reflect.DeepEqual(*e, again) {
		s.T.Errorf("%s: %v, %v", text, err, err2)
	}
	assert.True(s.T, e.Time.Equal(s.Now) && len(text) <= 10_000, "an entry of %s at %s, of %d bytes", e.Time, s.Now, len(text))
	out := fmt.Sprintf("%s %s %d/%d", e.Key, e.Kind, e.Was.ID, e.Was.Epoch)
	if e.Now != nil {
		out += fmt.Sprintf(" now=%d/%d", e.Now.ID, e.Now.Epoch)
	}
	if e.Holder != nil {
		out += " holder=" + e.Holder.ClientID + "@" + e.Holder.Host
	}
	if e.By != nil {
		out += " by=" + e.By.ClientID + "@" + e.By.Host
	}
	if e.Request != "" {
		out += " request=" + e.Request
	}
	if e.Open != 0 {
		out += " open=" + e.Open.String()
	}
	if e.Idle != 0 {
		out += " idle=" + e.Idle.String()
	}
	if e.PartitionN > 0 {
		out += fmt.Sprintf(" %d:%v", e.PartitionN, e.Partitions)
	}
	if e.LeftOut > 0 {
		out += fmt.Sprintf(" left-out=%d", e.LeftOut)
	}
	return out
}

func showTopics(list []topic) string {
	out := ""
	for _, t := range list {
		for _, p := range t.partitions {
			out += fmt.Sprintf(" %s:%d", t.name, p)
		}
	}
	return out
}

func (s *scenario) showMarkers(msg kmsg.Request) string {
	req := harness.OnTheWire(s.T, msg).(*kmsg.WriteTxnMarkersRequest)
	var parts []string
	for _, m := range req.Markers {
		out := map[bool]string{true: "commit", false: "abort"}[m.Committed] + fmt.Sprintf(" %d/%d under epoch %d", m.ProducerID, m.ProducerEpoch, m.CoordinatorEpoch)
		if m.TransactionVersion != 0 {
			out += fmt.Sprintf(" tv%d", m.TransactionVersion)
		}
		out += s.showStart(&m.UnknownTags)
		for _, t := range m.Topics {
			out += showTopics([]topic{{t.Topic, t.Partitions}})
		}
		parts = append(parts, out)
	}
	return strings.Join(parts, "; ")
}

func (s *scenario) showStart(tags *kmsg.Tags) string {
	run := ""
	if r := machine.StoreRunOf(tags); r != "" {
		run = " run=" + string(r)
	}
	if start := machine.TxnStartOf(tags); start != machine.NoTxnStart {
		return run + " start=" + s.since(int64(start))
	}
	return ""
}

// showReply shows an answer, and notes the producer that the client has now.
func (s *scenario) showReply(who string, resp kmsg.Response) string {
	switch r := resp.(type) {
	case *kmsg.InitProducerIDResponse:
		return "init: " + harness.ErrorName(r.ErrorCode) + s.told(who, r.ErrorCode, pair{r.ProducerID, r.ProducerEpoch})
	case *kmsg.EndTxnResponse:
		if r.Version < endTV2 {
			return "end: " + harness.ErrorName(r.ErrorCode)
		}
		return "end: " + harness.ErrorName(r.ErrorCode) + s.told(who, r.ErrorCode, pair{r.ProducerID, r.ProducerEpoch})
	case *kmsg.AddOffsetsToTxnResponse:
		return "offsets: " + harness.ErrorName(r.ErrorCode)
	case *kmsg.AddPartitionsToTxnResponse:
		return "add:" + s.showAdded(r)
	case *kmsg.DescribeTransactionsResponse:
		out := "describe:"
		for _, t := range r.TransactionStates {
			out += " " + s.showDescribed(&t)
		}
		return out
	case *kmsg.ListTransactionsResponse:
		out := "list: " + harness.ErrorName(r.ErrorCode)
		for _, t := range r.TransactionStates {
			out += fmt.Sprintf(" %s(%s %d)", t.TransactionalID, t.TransactionState, t.ProducerID)
		}
		if len(r.UnknownStateFilters) > 0 {
			out += fmt.Sprintf(" unknown: %s", strings.Join(r.UnknownStateFilters, " "))
		}
		return out
	}
	return fmt.Sprintf("%T", resp)
}

func (s *scenario) showAdded(r *kmsg.AddPartitionsToTxnResponse) (out string) {
	if r.ErrorCode != 0 {
		out = " " + harness.ErrorName(r.ErrorCode)
	}
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			out += fmt.Sprintf(" %s:%d %s", t.Topic, p.Partition, harness.ErrorName(p.ErrorCode))
		}
	}
	for _, x := range r.Transactions {
		out += " " + x.TransactionalID + "("
		for _, t := range x.Topics {
			for _, p := range t.Partitions {
				out += fmt.Sprintf(" %s:%d %s%s", t.Topic, p.Partition, harness.ErrorName(p.ErrorCode), s.showStart(&p.UnknownTags))
			}
		}
		out += " )"
	}
	return out
}

func (s *scenario) showDescribed(t *kmsg.DescribeTransactionsResponseTransactionState) string {
	if t.ErrorCode != 0 {
		return fmt.Sprintf("%s: %s", t.TransactionalID, harness.ErrorName(t.ErrorCode))
	}
	out := fmt.Sprintf("%s: %s %d/%d timeout=%s", t.TransactionalID, t.State, t.ProducerID, t.ProducerEpoch, time.Duration(t.TimeoutMillis)*time.Millisecond)
	if t.StartTimestamp != -1 {
		out += " start=" + s.since(t.StartTimestamp)
	}
	for _, p := range t.Topics {
		out += showTopics([]topic{{p.Topic, p.Partitions}})
	}
	return out
}

// told shows the producer in an answer. An error has none, and no client ever has
// the last epoch.
func (s *scenario) told(who string, code int16, p pair) string {
	if code != 0 {
		assert.Equal(s.T, p, noPair, "an error with producer")
		return ""
	}
	assert.True(s.T, p.epoch <= lastEpoch && p.epoch >= 0 && p.id >= 0, "%s is told of %s", who, p)
	s.pairs[who] = p
	return " " + p.String()
}

// state [id=x]: what the coordinator knows.
func (s *scenario) state(a args) {
	t := s.shard.txns[a.id()]
	if t == nil {
		s.Printf("%s does not exist\n", a.id())
		return
	}
	s.Printf("%s is %s\n", t.id, s.showValue(t.hard))
	if t.ending != nil {
		s.Printf("  left:%s, %d wait\n", showTopics(t.ending.remaining()), len(t.ending.waiting))
	}
}

// holder [id=x]: who asked for the producer last.
func (s *scenario) holder(a args) {
	clientID, host := s.shard.Holder(a.id())
	s.Printf("%q %q\n", clientID, host)
}
