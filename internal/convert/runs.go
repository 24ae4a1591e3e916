package convert

import (
	"sync"
	"time"
)

// pause is how long a conversion counts as being under way after its last step.
const pause = 3 * time.Second

// runs are the conversions of topics that are under way at this broker.
type runs struct {
	mu  sync.Mutex
	all map[string]run
}

type run struct {
	id    string
	steps int       // that are being taken
	last  time.Time // when one was
}

// begin says whether no other conversion of the topic is under way, and end is to be called after the step then.
func (cs *runs) begin(topic, id string, now func() time.Time) (end func(), ok bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for name, x := range cs.all {
		if x.steps == 0 && now().Sub(x.last) > pause {
			delete(cs.all, name)
		}
	}
	x, known := cs.all[topic]
	if known && x.id != id {
		return nil, false
	}
	if cs.all == nil {
		cs.all = map[string]run{}
	}
	cs.all[topic] = run{id, x.steps + 1, now()}
	return func() {
		cs.mu.Lock()
		defer cs.mu.Unlock()
		cs.all[topic] = run{id, cs.all[topic].steps - 1, now()}
	}, true
}
