package leader

import (
	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/share/window"
)

// Acknowledge takes what a member says of its records of a share partition: all of it, or
// nothing. Renew says that the request may renew locks.
func (l *Leader) Acknowledge(in In, member string, acks []window.Acknowledgement, renew bool) *Outcome {
	p := l.find(in.Key, in.Log)
	if p == nil {
		return decided(kerr.UnknownTopicOrPartition)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.window == nil || p.dropped {
		return decided(kerr.UnknownTopicOrPartition)
	}
	p.window.LogStart(in.Log.LogStartOffset())
	w, err := p.window.Acknowledge(l.now(), member, acks, renew)
	if err != nil || w == nil {
		p.changed()
		return decided(err)
	}
	done := newOutcome()
	p.begin(w, done)
	p.changed()
	return done
}

// Leave releases all that a member has acquired: its session ended.
func (l *Leader) Leave(group, member string) []*Outcome {
	var out []*Outcome
	for _, p := range l.of(group) {
		if done := p.release(member); done != nil {
			out = append(out, done)
		}
		p.leave()
	}
	return out
}

// release is Leave of one share partition; nil if there is nothing to wait for.
func (p *part) release(member string) *Outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.window == nil || p.dropped {
		return nil
	}
	w := p.window.Leave(member)
	if w == nil {
		return nil
	}
	done := newOutcome()
	p.begin(w, done)
	p.changed()
	return done
}
