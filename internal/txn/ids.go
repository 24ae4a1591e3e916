package txn

import (
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/machine"
)

const (
	// idPatience is how long a request waits for producer ids, and how long an
	// answer is waited for before they are asked for again.
	idPatience = 10 * time.Second
	// idBackoff is how long it takes to ask again after an error.
	idBackoff = 500 * time.Millisecond
	// maxWaiting is how many requests wait at most, for producer ids or for the end
	// of one transaction.
	maxWaiting = 1000
)

// producerIDs is a block of producer ids that no one else has. What is left of it
// at the end of a life is never used.
type producerIDs struct {
	next, end int64
	asked     uint64 // the send that asks for more, 0 if none is under way
	askedAt   time.Time
	timer     uint64     // 0 if none is armed
	waiting   []question // for a producer id, in the order in which they came
	fences    []string   // transactions that have timed out and need one to be aborted
}

// takeID returns a producer that no one has had. If there is none in stock the
// question waits for it; no question stands for a timeout, which the sweep sees
// again.
func (x *step) takeID(q *question) (pair, bool) {
	if x.ids.next < x.ids.end {
		x.ids.next++
		return pair{x.ids.next - 1, 0}, true
	}
	x.askForIDs()
	if q == nil {
		return noPair, false
	}
	if len(x.ids.waiting) >= maxWaiting {
		x.refuse(q, kerr.CoordinatorLoadInProgress)
		return noPair, false
	}
	if q.idBy.IsZero() {
		q.idBy = x.now.Add(idPatience)
	}
	x.ids.waiting = append(x.ids.waiting, *q)
	x.armIDs()
	return noPair, false
}

// askForIDs asks for a block, unless that is under way.
func (x *step) askForIDs() {
	if x.ids.asked != 0 && x.now.Before(x.ids.askedAt.Add(idPatience)) {
		return
	}
	x.ids.asked, x.ids.askedAt = x.send(machine.Self, kmsg.NewPtrAllocateProducerIDsRequest()), x.now
}

// allocated takes a block in, and lets those go on who wait for one.
func (x *step) allocated(e machine.Sent) {
	x.ids.asked = 0
	resp, ok := e.Msg.(*kmsg.AllocateProducerIDsResponse)
	if e.Err != nil || !ok || resp.ErrorCode != 0 || resp.ProducerIDStart < 0 || resp.ProducerIDLen <= 0 || resp.ProducerIDStart > math.MaxInt64-int64(resp.ProducerIDLen) {
		x.armIDs()
		return
	}
	x.ids.next, x.ids.end = resp.ProducerIDStart, resp.ProducerIDStart+int64(resp.ProducerIDLen)
	waiting, fences := x.ids.waiting, x.ids.fences
	x.ids.waiting, x.ids.fences = nil, nil
	for i := range waiting {
		x.ask(&waiting[i])
	}
	for _, id := range fences {
		x.timeOut(id)
	}
	x.armIDs()
}

// armIDs arms the timer for those who wait, if there are any.
func (x *step) armIDs() {
	if len(x.ids.waiting) == 0 {
		if x.ids.timer != 0 {
			x.ids.timer = 0
			x.cancel(machine.TimerKey{Kind: TimerIDs})
		}
		return
	}
	at := earliest(x.ids.waiting, question.hasIDBy)
	if next := x.now.Add(idBackoff); x.ids.asked == 0 && next.Before(at) {
		at = next
	}
	x.ids.timer = x.arm(machine.TimerKey{Kind: TimerIDs}, at)
}

// idsFired turns those away who have waited for too long, and asks again on behalf
// of the others. Kafka says the same: clients try again.
func (x *step) idsFired() {
	x.ids.timer = 0
	x.ids.waiting = x.turnAway(x.ids.waiting, question.hasIDBy, kerr.CoordinatorLoadInProgress)
	if len(x.ids.waiting) > 0 {
		x.askForIDs()
	}
	x.armIDs()
}
