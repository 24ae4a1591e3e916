package group

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"

	"muster/internal/group/classic"
	"muster/internal/group/kind"
	"muster/internal/group/schema"
	"muster/internal/group/share"
	"muster/internal/machine"
)

// new [what it is about]: an empty coordinator at the hour zero.
func (s *scenario) begin(*datadriven.TestData) {
	s.restart()
	s.Out.WriteString("an empty coordinator\n")
}

// group a b/i … [in=Stable|CompletingRebalance] [any argument of join]: these
// clients join, and are the members of a group; /i makes one static.
func (s *scenario) group(d *datadriven.TestData) {
	var names []string
	var options []datadriven.CmdArg
	in := classic.Stable.String()
	id := "g"
	for _, a := range d.CmdArgs {
		switch {
		case len(a.Vals) == 0:
			names = append(names, a.Key)
		case a.Key == "in":
			in = a.Vals[0]
		default:
			if a.Key == "group" {
				id = a.Vals[0]
			}
			options = append(options, a)
		}
	}
	for i, name := range names {
		names[i], _, _ = strings.Cut(name, "/")
		s.enter(name, options)
	}
	for s.shard.classic(id).State == classic.PreparingRebalance {
		s.Pass(s.cfg.InitialDelay)
	}
	if in == classic.Stable.String() {
		s.settle(id, names)
	}
	s.Out.Reset()
	s.describeState(id)
}

// enter lets a client join, again if it is told to.
func (s *scenario) enter(name string, options []datadriven.CmdArg) {
	name, instance, static := strings.Cut(name, "/")
	cmd := append([]datadriven.CmdArg{{Key: name}}, options...)
	if static {
		cmd = append(cmd, datadriven.CmdArg{Key: "instance", Vals: []string{instance}})
	}
	before := s.names[name]
	s.join(&datadriven.TestData{CmdArgs: cmd})
	if s.names[name] != before {
		s.join(&datadriven.TestData{CmdArgs: cmd})
	}
}

// settle lets all members sync; each is assigned a partition of t.
func (s *scenario) settle(id string, names []string) {
	g := s.shard.classic(id)
	var assign []string
	for i, name := range names {
		assign = append(assign, fmt.Sprintf("$%s=t:%d", name, i))
	}
	for _, name := range names {
		cmd := []datadriven.CmdArg{
			{Key: name}, {Key: "group", Vals: []string{id}}, {Key: "generation", Vals: []string{fmt.Sprint(g.Generation)}},
			{Key: "type", Vals: []string{g.ProtocolType}}, {Key: "protocol", Vals: []string{g.Protocol}},
		}
		if s.names[name] == g.Leader {
			cmd = append(cmd, datadriven.CmdArg{Key: "assign", Vals: assign})
		}
		s.sync(&datadriven.TestData{CmdArgs: cmd})
	}
}

// state [g]: what the coordinator knows of a group.
func (s *scenario) state(d *datadriven.TestData) {
	id := "g"
	if len(d.CmdArgs) > 0 {
		id = d.CmdArgs[0].Key
	}
	s.describeState(id)
}

func (s *scenario) describeState(id string) {
	if c := s.shard.consumer(id); c != nil {
		s.showConsumerState(c)
		return
	}
	if c := s.shard.streams(id); c != nil {
		s.showStreamsState(c)
		return
	}
	if g, ok := s.shard.Groups[id].(*share.Group); ok {
		s.showShareState(g)
		return
	}
	g := s.shard.classic(id)
	if g == nil {
		s.Printf("%s does not exist\n", groupName(id))
		return
	}
	s.Printf("%s is %s in generation %d", groupName(id), g.State, g.Generation)
	for _, v := range [...][2]string{{"type", g.ProtocolType}, {"protocol", g.Protocol}, {"leader", s.shown(g.Leader)}} {
		if v[1] != "" {
			s.Printf(", %s %s", v[0], v[1])
		}
	}
	s.Out.WriteString("\n")
	for m := g.Members.First; m != nil; m = m.Next {
		s.Printf("  %s%s %s%s\n", s.show(m.ID), instance(m.Instance), showAssignment(m.Assigned), progress(g, m))
	}
	for id := range g.PendingIDs() {
		s.Printf("  %s pending\n", s.show(id))
	}
}

func (s *scenario) shown(id string) string {
	if id == "" {
		return ""
	}
	return s.show(id)
}

// progress says how far a member has got in a rebalance.
func progress(g *classic.Group, m *classic.Member) string {
	switch {
	case m.Join != 0:
		return " has joined"
	case g.State == classic.PreparingRebalance:
		return " has not joined"
	case m.Sync != 0:
		return " has synced"
	case m.Unsynced:
		return " has not synced"
	}
	return ""
}

// timers [sweep]: what will happen if nothing else does, and when. A member's
// session timer may fire earlier and be armed again, what counts is when the
// member is given up.
func (s *scenario) showTimers(d *datadriven.TestData) {
	keys := slices.SortedFunc(maps.Keys(s.Timers), func(a, b machine.TimerKey) int {
		return strings.Compare(a.ID+a.Kind+s.show(a.Member), b.ID+b.Kind+s.show(b.Member))
	})
	for _, key := range keys {
		at := s.Timers[key].At
		what := key.Kind
		switch {
		case key.Kind == kind.TimerSweep:
			if !d.HasArg("sweep") {
				continue
			}
		case key.Kind == kind.TimerSession:
			what = fmt.Sprintf("session of %s", s.show(key.Member))
			if c := s.shard.consumer(key.ID); c != nil {
				at = c.Member(key.Member).Deadline
			} else if c := s.shard.streams(key.ID); c != nil {
				at = c.Member(key.Member).Deadline
			} else if m := s.shard.classic(key.ID).Members.Get(key.Member); m != nil {
				at = m.Deadline
			}
		case key.Member != "" && (key.Kind == kind.TimerJoin || key.Kind == kind.TimerSync):
			what = fmt.Sprintf("%s of %s", key.Kind, s.show(key.Member))
		case key.Kind == kind.TimerRevoke:
			what = fmt.Sprintf("patience with %s", s.show(key.Member))
		}
		if key.ID != "g" && key.ID != "" {
			what = key.ID + " " + what
		}
		s.Printf("%s ends in %s\n", what, at.Sub(s.Now).Round(time.Millisecond))
	}
	if s.Out.Len() == 0 {
		s.Out.WriteString("no timers\n")
	}
}

// stale-timers: all timers that were replaced or cancelled fire all the same, as
// they may if their firing was under way.
func (s *scenario) staleTimers(*datadriven.TestData) { s.FireStale(&s.shard.Seq) }

// stateOf is the state of a classic group, or that it is of another kind.
type stateOf struct {
	classic.State
	other schema.Kind
}

// states returns the state of every group.
func (s *scenario) states() map[string]stateOf {
	out := map[string]stateOf{}
	for id, g := range s.shard.Groups {
		if c, ok := g.(*classic.Group); ok {
			out[id] = stateOf{State: c.State}
		} else {
			out[id] = stateOf{other: g.Kind()}
		}
	}
	return out
}

// predecessors are the states from which a group may come into another.
var predecessors = map[classic.State][]classic.State{
	classic.Empty:               {classic.PreparingRebalance},
	classic.PreparingRebalance:  {classic.Empty, classic.CompletingRebalance, classic.Stable},
	classic.CompletingRebalance: {classic.PreparingRebalance},
	classic.Stable:              {classic.CompletingRebalance},
}

// showChanges tells which groups are in another state now, and checks that they
// came into it from one that they may come from.
func (s *scenario) showChanges(before map[string]stateOf) {
	after := s.states()
	for _, id := range slices.Sorted(maps.Keys(after)) {
		if before[id] == after[id] || before[id].State == classic.Empty && after[id].State == classic.Empty { // A group that was not there was Empty.
			continue
		}
		if other := after[id].other; other != "" {
			s.Printf("%s becomes a %s group\n", groupName(id), other)
			continue
		}
		if before[id].other != "" {
			s.Printf("%s becomes a classic group\n", groupName(id))
		}
		if g := s.shard.classic(id); !slices.Contains(predecessors[g.State], g.Previous) {
			s.T.Errorf("%s became %s after %s", id, g.State, g.Previous)
		}
		s.Printf("%s becomes %s\n", groupName(id), after[id].State)
	}
	for _, id := range slices.Sorted(maps.Keys(before)) {
		if _, exists := after[id]; !exists {
			s.Printf("%s is gone\n", groupName(id))
		}
	}
}
