package web

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"muster/internal/auth"
	"muster/internal/web/fleet"
	"muster/internal/web/problem"
)

// changesQuery asks for changes.
type changesQuery struct {
	From string `query:"from" doc:"the number of the first; absent for none, only the number of the next"`
}

// fleetChange is what happened to the groups of a broker since.
type fleetChange struct {
	Groups []string `json:"groups"`
	Next   uint64   `json:"next"`
	Missed bool     `json:"missed"`
	Looked int64    `json:"looked"` // When it last looked at its groups, in nanoseconds.
}

// fleetChanges answers another broker, which tells of the groups only those who may know.
func (a *api) fleetChanges(_ *call, q *changesQuery) (*fleetChange, error) {
	out := &fleetChange{Groups: []string{}, Looked: a.reads.Snapshot().At.UnixNano()}
	if q.From == "" {
		_, out.Next, _ = a.reads.Changes(0)
		return out, nil
	}
	from, err := strconv.ParseUint(q.From, 10, 64)
	if err != nil {
		return nil, problem.BadRequest("from is a number, not %q", q.From)
	}
	groups, next, missed := a.reads.Changes(from)
	out.Groups, out.Next, out.Missed = some(groups), next, missed || next < from
	return out, nil
}

// maxDistant is how many changes of groups of other brokers are remembered for streams.
const maxDistant = 4096

// distant asks the other brokers, once a second and as long as there is a stream, what
// happened to their groups. All streams share it.
type distant struct {
	api *api

	mu      sync.Mutex
	streams int
	cancel  context.CancelFunc
	ring    [maxDistant]string
	place   farPlace
	peers   map[int32]*distantPeer
	turn    int // Who is asked first: the one after those who were asked last.
}

// farPlace is up to where someone was told of what happened at other brokers.
type farPlace struct {
	next   uint64 // The number of the next change of a group.
	looked uint64 // How often one of them had looked at its groups.
	gaps   uint64 // How often something was missed.
}

// distantPeer is where one broker is.
type distantPeer struct {
	incarnation string
	known       bool // From and looked are.
	from        uint64
	looked      int64
	asking      bool
}

func newDistant(a *api) *distant { return &distant{api: a, peers: map[int32]*distantPeer{}} }

// enter counts a stream; the first has the others asked.
func (d *distant) enter() farPlace {
	if d.api.fleet == nil {
		return farPlace{}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.streams++; d.streams == 1 {
		ctx, cancel := context.WithCancel(context.Background())
		d.cancel = cancel
		d.api.running.Add(1) // The stream is counted, so it does not end before.
		go d.run(ctx)
	}
	return d.place
}

// leave ends what enter began.
func (d *distant) leave() {
	if d.api.fleet == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.streams--; d.streams == 0 {
		d.cancel()
		d.peers = map[int32]*distantPeer{}
	}
}

// since returns what happened after a place, which moves on.
func (d *distant) since(p *farPlace) (groups []string, looked, missed bool) {
	if d.api.fleet == nil {
		return nil, false, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	missed = d.place.gaps != p.gaps || d.place.next-p.next > maxDistant
	for n := p.next; !missed && n < d.place.next; n++ {
		groups = append(groups, d.ring[n%maxDistant])
	}
	looked = d.place.looked != p.looked
	*p = d.place
	return groups, looked, missed
}

// run asks until the last stream has ended.
func (d *distant) run(ctx context.Context) {
	defer d.api.running.Done()
	t := time.NewTicker(streamTick)
	defer t.Stop()
	var asking sync.WaitGroup
	defer asking.Wait()
	for {
		for _, to := range d.due() {
			asking.Go(func() { d.ask(ctx, to) })
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
	}
}

// due returns the brokers to be asked now: those that have answered what they were asked.
// That one has come, gone or been started anew is a gap.
func (d *distant) due() []fleet.Target {
	others := d.api.fleet.Others()
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []fleet.Target
	there := map[int32]bool{}
	next := d.turn
	for i := range others {
		to := others[(d.turn+i)%len(others)]
		there[to.Node] = true
		p := d.peers[to.Node]
		if p == nil || p.incarnation != to.Incarnation {
			if p != nil {
				d.place.gaps++
			}
			p = &distantPeer{incarnation: to.Incarnation}
			d.peers[to.Node] = p
		}
		if !p.asking && len(out) < maxAsking {
			p.asking = true
			out = append(out, to)
			next = d.turn + i + 1
		}
	}
	for node := range d.peers {
		if !there[node] {
			delete(d.peers, node)
			d.place.gaps++
		}
	}
	d.turn = next % max(len(others), 1)
	return out
}

// ask asks a broker what happened.
func (d *distant) ask(ctx context.Context, to fleet.Target) {
	d.mu.Lock()
	p := d.peers[to.Node]
	uri := FleetPrefix + "/changes"
	if p != nil && p.known {
		uri += fmt.Sprintf("?from=%d", p.from)
	}
	d.mu.Unlock()
	c := &call{who: auth.Principal(""), request: (&http.Request{}).WithContext(ctx)}
	got, err := askOne[fleetChange](d.api, c, to, fleet.Question{URI: uri})
	d.mu.Lock()
	defer d.mu.Unlock()
	if p == nil || d.peers[to.Node] != p {
		return
	}
	p.asking = false
	if err == nil {
		d.take(p, got)
	}
}

// take takes in what a broker said. The lock is held.
func (d *distant) take(p *distantPeer, got *fleetChange) {
	if p.known && got.Missed {
		d.place.gaps++
	}
	for _, group := range got.Groups {
		d.ring[d.place.next%maxDistant] = group
		d.place.next++
	}
	if !p.known || got.Looked != p.looked { // Before it was asked for the first time, something may have happened, too.
		d.place.looked++
	}
	p.known, p.from, p.looked = true, got.Next, got.Looked
}
