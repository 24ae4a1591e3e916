package contest

import (
	"fmt"
	"net"
	"time"

	"muster/bench/rig"
)

// tailCase is something that goes on while small records are produced.
type tailCase struct {
	name string
	// begin gets ready and returns what goes on, and what checks afterwards that it
	// did; nil for nothing. Topics and files are named after the turn.
	begin func(x *session, turn string) (*tailWork, error)
}

// tailWork is what goes on.
type tailWork struct {
	run   func(stop <-chan struct{}) error
	check func() error
}

var tailCases = []tailCase{
	{"quiet", nil},
	{"compaction", (*session).compactionWork},
	{"retention", (*session).retentionWork},
	{"rebalance", (*session).rebalanceWork},
	{"page cache", (*session).hogWork},
}

func (c tailCase) group() string { return "wild tail, " + c.name }

func tailNames() []string {
	var names []string
	for _, c := range tailCases {
		names = append(names, c.group())
	}
	return names
}

// How often both sides look whether there is something to compact or to delete, so
// that they do so all the time. Kafka begins with that 30 seconds after its start.
func (c *contest) tailSettings(s rig.Side) ([]string, error) {
	set := []string{rig.NoDelay, "log.cleaner.backoff.ms=250", "log.retention.check.interval.ms=500"}
	if s == rig.Theirs {
		set = append(set, "log.initial.task.delay.ms=500")
	}
	return set, nil
}

// The load: a record of 100 bytes each millisecond, to eight partitions in turn.
const (
	tailEvery      = time.Millisecond
	tailPartitions = 8
)

// tails measures how long a small produce takes at worst in each case.
func (x *session) tails() error {
	t, err := x.newTicker("wild-tail", tailPartitions, tailEvery)
	if err != nil {
		return err
	}
	defer t.close()
	if _, err := t.run(x.o.warm); err != nil { // to warm up
		return err
	}
	turn := 0
	for _, c := range tailCases {
		if !x.wanted(c.group()) {
			continue
		}
		err := x.underRules(func(rules []string) error {
			turn++
			return x.tail(t, c, rules, fmt.Sprint(turn))
		})
		if err != nil {
			return fmt.Errorf("%s: %w", c.group(), err)
		}
	}
	return nil
}

func (x *session) tail(t *ticker, c tailCase, rules []string, turn string) error {
	measure := func() error {
		took, err := t.run(x.o.wild.tail)
		if err != nil {
			return err
		}
		for _, p := range tailPercentiles {
			m := pairMetric{group: c.group(), name: "produce, " + p.name, unit: "ms"}
			x.noteRules(rules, m, rig.Millis(percentile(took, p.share)))
		}
		return nil
	}
	if c.begin == nil {
		return measure()
	}
	w, err := c.begin(x, turn)
	if err != nil {
		return err
	}
	if err := x.beside(w.run, measure); err != nil {
		return err
	}
	if err := w.check(); err != nil {
		return err
	}
	return x.flush()
}

// rebalanceWork lets a member of a large group come and go, again and again.
func (x *session) rebalanceWork(turn string) (*tailWork, error) {
	if err := x.withConn(rig.FindCoordinator); err != nil {
		return nil, err
	}
	conns, err := x.Peers(x.p, x.o.wild.members+1)
	if err != nil {
		return nil, err
	}
	members := rig.NewMembers("wild-tail-"+turn, conns[:x.o.wild.members])
	late := &rig.GroupMember{Conn: conns[x.o.wild.members], Roster: members[0].Roster}
	if err := x.formGroup(members); err != nil {
		rig.CloseAll(conns)
		return nil, err
	}
	rebalances := 0
	return &tailWork{
		run: func(stop <-chan struct{}) error {
			defer rig.CloseAll(conns)
			for {
				select {
				case <-stop:
					return nil
				default:
				}
				if err := rig.ComeAndGo(members, late); err != nil {
					return err
				}
				rebalances += 2
			}
		},
		check: func() error {
			x.Say("a group of %d rebalanced %d times meanwhile", x.o.wild.members, rebalances)
			if rebalances == 0 {
				return fmt.Errorf("no rebalance")
			}
			return nil
		},
	}, nil
}

// formGroup forms a group as soon as its coordinator has loaded.
func (x *session) formGroup(members []*rig.GroupMember) error {
	probe := rig.NewMembers(members[0].Roster.Group, rig.ConnsOf(members[:1]))[0]
	err := x.Await(func() error {
		if err := probe.Enter(); err != nil {
			return err
		}
		return probe.Leave()
	})
	if err != nil {
		return err
	}
	return rig.Form(members)
}

// paced sends one load after the other at a rate in MB/s until it is to stop, over a
// connection of its own. It waits for each answer, and if that is late sends fewer.
func (x *session) paced(loads []*rig.Load, rate float64, stop <-chan struct{}) (sent int64, err error) {
	conn, err := x.p.Dial(x.Context)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	every := time.Duration(float64(loads[0].Bytes()) / rate / 1e6 * float64(time.Second))
	tick := time.NewTicker(max(every, time.Microsecond))
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-stop:
			return sent, nil
		case <-tick.C:
		}
		l := loads[i%len(loads)]
		if err := l.Pump([]net.Conn{conn}, 1, true, rig.Produced(l.Shape)); err != nil {
			return sent, err
		}
		sent += int64(l.Bytes())
	}
}
