package contest

import (
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/bench/rig"
)

// What a broker meets in the wild, measured on both sides in parts:
//
//	defaults     each side as it comes: muster's acks=all waits for the disk, Kafka's does not
//	TLS          produce and fetch under TLS
//	codecs       produce and fetch of batches that the producer has compressed
//	connections  many connections: their memory, at rest, and when all come again at once
//	tail         how long a small produce takes at worst, quiet and while other work goes on
//	far behind   consumers that read what is on disk, beside producers
//	clients      Kafka's Java clients and librdkafka on a topic of many partitions
//
// It takes a while, so one round of the contest has it unless more are asked for.

// wildSizes says how much is done.
type wildSizes struct {
	rounds      int           // of the contest that have it
	partitions  int           // of a wide topic
	connections int           // that are idle, and come again
	members     int           // of the group that rebalances
	time        time.Duration // to count requests for
	tail        time.Duration // to measure latency for, in each case
	lead        time.Duration // that other work begins earlier
	segment     int           // size of segments that are compacted and deleted
	behind      float64       // GB that consumers are behind
	catchUp     time.Duration // that they read for, at most
	hog         float64       // GB that another program writes and reads
	records     int           // that a real client sends, 0 for no real clients
}

func defaultWildSizes() wildSizes {
	return wildSizes{
		partitions: 1000, connections: 10_000, members: 1000, time: 3 * time.Second, tail: 10 * time.Second, lead: 2 * time.Second,
		segment: 4 << 20, catchUp: 15 * time.Second, hog: 4, records: 300_000,
	}
}

// wildPart is a part of it, on one broker.
type wildPart struct {
	names    []string
	defaults bool                                           // the broker begins with its defaults, not with the rule of the page cache
	set      func(c *contest, s rig.Side) ([]string, error) // settings besides, nil for none
	steps    func(x *session) error
}

func wildParts() []wildPart {
	return []wildPart{
		{names: shippedNames, defaults: true, steps: (*session).shipped},
		{names: tlsNames, set: (*contest).tlsSettings, steps: (*session).secured},
		{names: codecNames(), steps: (*session).codecs},
		{names: []string{crowdName}, steps: (*session).connections},
		{names: tailNames(), set: (*contest).tailSettings, steps: (*session).tails},
		{names: []string{behindName}, steps: (*session).farBehind},
		{names: clientNames, steps: (*session).clients},
	}
}

// wildNames lists all measures.
func wildNames() []string {
	var names []string
	for _, p := range wildParts() {
		names = append(names, p.names...)
	}
	return names
}

// wild returns the measures of all parts.
func (c *contest) wild() []func(s *subject, folder string) error {
	var out []func(s *subject, folder string) error
	for _, p := range wildParts() {
		out = append(out, func(s *subject, folder string) error { return c.wildPart(p, s, folder) })
	}
	return out
}

func (c *contest) wildPart(p wildPart, s *subject, folder string) error {
	if c.round >= c.o.wild.rounds || !c.anyWanted(p.names...) {
		return nil
	}
	var set []string
	if p.set != nil {
		var err error
		if set, err = p.set(c, s.side); err != nil {
			return err
		}
	}
	open := c.open
	if p.defaults {
		open = c.openWith
	}
	x, err := open(s, folder, set...)
	if err != nil {
		return err
	}
	defer x.p.Kill()
	if err := p.steps(x); err != nil {
		return fmt.Errorf("%s: %w\n%s", p.names[0], err, x.p.Stderr)
	}
	return nil
}

// leaveOut notes once that something was not measured, or less than asked for.
func (c *contest) leaveOut(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(c.pairs.LeftOut, text) {
		c.pairs.LeftOut = append(c.pairs.LeftOut, text)
		c.Say("left out, or less than asked for: %s", text)
	}
}

// underRules runs fn with answers from the page cache, and then with the defaults.
// To Kafka that is the same, so it runs once there and counts for both.
func (x *session) underRules(fn func(rules []string) error) error {
	if x.side == rig.Theirs {
		return fn([]string{fromCache, byDefault})
	}
	for _, rule := range []string{fromCache, byDefault} {
		set := fmt.Sprintf("%s=%t", pageRule, rule == byDefault)
		err := x.withConn(func(c net.Conn) error { return alter(c, kmsg.ConfigResourceTypeBroker, "", set) })
		if err == nil {
			err = fn([]string{rule})
		}
		if err != nil {
			return fmt.Errorf("%s: %w", rule, err)
		}
	}
	return nil
}

// noteRules notes a value under each rule that it was measured under.
func (x *session) noteRules(rules []string, m pairMetric, v float64) {
	for _, m.rule = range rules {
		x.note(m, v)
	}
}

// beside runs other work from a little before measure until it has ended.
func (x *session) beside(work func(stop <-chan struct{}) error, measure func() error) error {
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- work(stop) }()
	select {
	case err := <-done:
		return fmt.Errorf("what should go on beside ended: %w", err)
	case <-time.After(x.o.wild.lead):
	}
	err := measure()
	close(stop)
	if other := <-done; other != nil {
		return fmt.Errorf("what went on beside: %w", other)
	}
	return err
}
