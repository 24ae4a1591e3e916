package share

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/metadata"
)

// Before a member is given a partition, the share coordinator must know it. What is missing is
// asked for with a heartbeat; when it is there, the next heartbeat of any member has the group
// have another epoch, with a target that has it (KIP-932).

const (
	// retryAfter is when what was not answered is asked again.
	retryAfter = 30 * time.Second
	// What was refused is asked for again after a pause, which grows: Kafka's group coordinator
	// asks with the next heartbeat, but what it asks by tries for long before it says so.
	firstPause = time.Second
	lastPause  = 30 * time.Second
	// maxInitialize is how many partitions are asked for at a time.
	maxInitialize = 5000
)

// looked is when it was last looked for what is missing.
type looked struct {
	image *metadata.Image
	again time.Time // zero if there is nothing to wait for
}

// initialize asks the share coordinator for what is missing, with heartbeats: most find at a
// glance that nothing is.
func (g *Group) initialize(x *kind.Step) {
	if x.Image == nil || g.looked.image == x.Image && (g.looked.again.IsZero() || x.Now.Before(g.looked.again)) {
		return
	}
	x.Weigh(g.ID)
	next := g.topics.edit()
	changed := next.forget(x.Image)
	missing, again := g.missing(x, next)
	if len(missing) > 0 {
		next.begin(missing, x.Image)
		for next.fits(x, g.ID) != nil && len(missing) > 0 { // As many as there is room for; perhaps there is more later.
			missing, again = missing[:len(missing)/2], x.Now.Add(retryAfter)
			next = g.topics.edit()
			next.forget(x.Image)
			next.begin(missing, x.Image)
		}
	}
	if changed || len(missing) > 0 {
		g.write(x, next)
	}
	if len(missing) > 0 {
		g.retryAt = x.Now.Add(retryAfter)
		again = g.retryAt
		g.ask(x, initializeRequest(g.ID, missing, g.Epoch, nil), missing, &initialized{})
	}
	g.confirm(x)
	g.looked = looked{x.Image, sooner(again, g.confirmAt)}
}

// sooner is the first of two moments. Zero is none.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// failed is what the share coordinator has refused to initialize.
type failed struct {
	parts []partition
	times int       // in succession
	until time.Time // it is not asked for them
}

// note takes note of an answer.
func (f *failed) note(now time.Time, asked, refused []partition) {
	f.parts = union(without(f.parts, asked), refused)
	switch {
	case len(refused) > 0:
		f.until = now.Add(min(firstPause<<min(f.times, 10), lastPause))
		f.times++
	case len(f.parts) == 0:
		f.times = 0
	}
}

// missing lists partitions that members subscribe to, of which the share coordinator has no
// state and is not asked for it either, and when to look again.
func (g *Group) missing(x *kind.Step, t *topics) (out []partition, again time.Time) {
	if g.isBusy(x) {
		return nil, g.asked.Add(retryAfter)
	}
	for _, topic := range g.FindTopics(x.Image).Found {
		for n := range topic.Partitions {
			p := partition{Topic: topic.ID, Number: int32(n)}
			switch {
			case has(t.initialized, p):
			case has(t.initializing, p) && x.Now.Before(g.retryAt):
				again = sooner(again, g.retryAt)
			case has(g.failed.parts, p) && x.Now.Before(g.failed.until):
				again = sooner(again, g.failed.until)
			case len(out) == maxInitialize:
				again = x.Now
			default:
				out = append(out, p)
			}
		}
	}
	return modern.Sorted(out), again // They come in the order of names.
}

// initialized is what happens when the share coordinator was asked to initialize partitions for
// members.
type initialized struct{}

func (*initialized) done(x *kind.Step, g *Group, q *question) {
	if g.Gone || q.lost {
		return // It is asked again.
	}
	// What was initialized under a later epoch is. The log may have lost that, with the epoch.
	for p, code := range q.codes {
		if code == kerr.FencedStateEpoch.Code {
			q.codes[p] = 0
		}
	}
	g.failed.note(x.Now, q.parts, g.settle(x, q))
}

// settle stores what the share coordinator has initialized, and what it has not.
func (g *Group) settle(x *kind.Step, q *question) (refused []partition) {
	if len(g.topics.initialized) == 0 {
		g.confirmAt = x.Now.Add(confirmEvery) // There is nothing that could have been lost.
	}
	done, refused := q.outcomes(g.topics.initializing)
	next := g.topics.edit()
	next.end(done, refused)
	g.write(x, next)
	return refused
}

// hasUnassigned says whether there is something that members subscribe to, and that is
// initialized, which no one is to have.
func (g *Group) hasUnassigned(image *metadata.Image) bool {
	if !g.untested || image == nil || g.IsBehind() {
		return false
	}
	assigned := map[partition]bool{}
	for _, mem := range g.Members {
		for _, p := range mem.Target {
			assigned[p] = true
		}
	}
	for _, p := range g.topics.initialized {
		if t := image.TopicByID(p.Topic); t != nil && g.names[t.Name] > 0 && !assigned[p] {
			return true
		}
	}
	g.untested = false
	return false
}

// isBusy says whether the share coordinator is being asked to change something. No one else asks
// it meanwhile: which of two comes first could not be told.
func (g *Group) isBusy(x *kind.Step) bool {
	return g.asking != nil && x.Now.Before(g.asked.Add(retryAfter))
}
