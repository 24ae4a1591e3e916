// Package harness plays clients, clock and timers around a core, for tests that are
// written as scenarios: files of commands, each with what the core does about it. The
// language is package datadriven's; a core's own tests add the commands that it knows,
// and show its effects.
package harness

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/machine"
)

// Walk runs the files in testdata, each with what begin returns for it. See
// testdata/README.md for the language; -rewrite writes the outcomes anew.
func Walk(t *testing.T, begin func(*testing.T) func(*testing.T, *datadriven.TestData) string) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if strings.HasSuffix(path, ".txt") {
			datadriven.RunTest(t, path, begin(t))
		}
	})
}

// Scenario is what surrounds a core in a scenario.
type Scenario struct {
	T          testing.TB
	Start, Now time.Time
	Asked      map[machine.RequestID]Asked        // who waits for which answer
	Timers     map[machine.TimerKey]machine.Timer // armed
	Stale      []machine.Timer                    // replaced or cancelled since
	Out        strings.Builder

	step func(machine.Event)
	last machine.RequestID
}

// Asked is a request that waits for its answer.
type Asked struct {
	Who string
	Req kmsg.Request
}

// Begin is the start of a scenario, whose core is given events by step.
func Begin(t testing.TB, step func(machine.Event)) Scenario {
	start := time.Unix(1_700_000_000, 0).UTC()
	s := Scenario{T: t, Start: start, Now: start, step: step}
	s.Forget()
	return s
}

// Forget is the end of a core: everybody who waits is told, and timers are gone.
func (s *Scenario) Forget() {
	for _, id := range slices.Sorted(maps.Keys(s.Asked)) {
		s.Printf("%s ← NOT_COORDINATOR (16)\n", s.Asked[id].Who)
	}
	s.Timers, s.Stale, s.Asked = map[machine.TimerKey]machine.Timer{}, nil, map[machine.RequestID]Asked{}
}

// Printf writes down what happens.
func (s *Scenario) Printf(format string, args ...any) { fmt.Fprintf(&s.Out, format, args...) }

// Outcome is what has happened in a command.
func (s *Scenario) Outcome() string {
	if s.Out.Len() == 0 {
		return "nothing happens\n"
	}
	return s.Out.String()
}

// Request has a client send a request, as the broker reads it: without what its version
// has no field for.
func (s *Scenario) Request(who, clientID, host string, msg kmsg.Request) {
	s.last++
	id := s.last
	s.Asked[id] = Asked{who, OnTheWire(s.T, msg)}
	s.step(machine.Request{ID: id, ClientID: clientID, Host: host, Msg: s.Asked[id].Req})
	if _, ok := s.Asked[id]; ok {
		s.Printf("%s waits\n", who)
	}
}

// Answered returns who an answer is for, and what it reads. Each request is answered
// once.
func (s *Scenario) Answered(r machine.Reply) (who string, resp kmsg.Response, ok bool) {
	a, ok := s.Asked[r.ID]
	if !ok {
		s.T.Errorf("a second answer, or one that was not asked for: %v", r)
		return "", nil, false
	}
	delete(s.Asked, r.ID)
	return a.Who, s.Wire(a.Req, r.Msg), true
}

// Wire returns an answer as the client reads it in the version of its request.
func (s *Scenario) Wire(req kmsg.Request, resp kmsg.Response) kmsg.Response {
	if resp.GetVersion() != req.GetVersion() || resp.Key() != req.Key() {
		s.T.Errorf("%T version %d answers %T version %d", resp, resp.GetVersion(), req, req.GetVersion())
	}
	again := req.ResponseKind()
	if err := again.ReadFrom(resp.AppendTo(nil)); err != nil {
		s.T.Errorf("%T version %d: %v", resp, resp.GetVersion(), err)
	}
	return again
}

// OnTheWire returns a request as the broker reads it in its version.
func OnTheWire(t interface{ Fatal(...any) }, msg kmsg.Request) kmsg.Request {
	again := kmsg.RequestForKey(msg.Key())
	again.SetVersion(msg.GetVersion())
	if err := again.ReadFrom(msg.AppendTo(nil)); err != nil {
		t.Fatal(err)
	}
	return again
}

// Answered takes a request from those that wait for answers, and returns it with its
// answer as the client reads it. Each request is answered once, in its version.
func Answered(t interface{ Fatalf(string, ...any) }, asked map[machine.RequestID]kmsg.Request, r machine.Reply) (kmsg.Request, kmsg.Response) {
	req, ok := asked[r.ID]
	if !ok {
		t.Fatalf("request %d is answered twice, or was never asked", r.ID)
	}
	delete(asked, r.ID)
	resp := req.ResponseKind()
	if err := resp.ReadFrom(r.Msg.AppendTo(nil)); err != nil || r.Msg.GetVersion() != req.GetVersion() {
		t.Fatalf("answer of version %d to version %d: %v", r.Msg.GetVersion(), req.GetVersion(), err)
	}
	return req, resp
}

// Arm adds the timers of a step to those that are armed, and returns the ones that they
// replace or cancel.
func Arm(armed map[machine.TimerKey]machine.Timer, timers []machine.Timer) (stale []machine.Timer) {
	for _, tm := range timers {
		if old, ok := armed[tm.Key]; ok {
			stale = append(stale, old)
		}
		delete(armed, tm.Key)
		if !tm.Cancel {
			armed[tm.Key] = tm
		}
	}
	return stale
}

// Pass lets time pass and fires the timers that come due, in order.
func (s *Scenario) Pass(d time.Duration) {
	until := s.Now.Add(d)
	for {
		tm, ok := Due(s.Timers, until)
		if !ok {
			break
		}
		delete(s.Timers, tm.Key)
		s.Now = tm.At
		before := s.Out.Len()
		s.step(machine.TimerFired{Key: tm.Key, Seq: tm.Seq})
		if s.Out.Len() > before {
			text := s.Out.String()
			s.Out.Reset()
			s.Printf("%safter %s:\n%s", text[:before], s.Now.Sub(s.Start), text[before:])
		}
	}
	s.Now = until
}

// FireStale fires the timers that were replaced or cancelled. seq is the number of the last
// that was armed.
func (s *Scenario) FireStale(seq *uint64) {
	if len(s.Stale) == 0 {
		s.T.Error("there are none")
	}
	for _, tm := range s.Stale {
		last := *seq
		s.step(machine.TimerFired{Key: tm.Key, Seq: tm.Seq})
		if *seq != last {
			s.T.Errorf("stale timer %v has another one armed", tm.Key)
		}
	}
}

// Due returns the first timer that fires until then.
func Due(timers map[machine.TimerKey]machine.Timer, until time.Time) (machine.Timer, bool) {
	var due []machine.Timer
	for _, tm := range timers {
		if !tm.At.After(until) {
			due = append(due, tm)
		}
	}
	if len(due) == 0 {
		return machine.Timer{}, false
	}
	return slices.MinFunc(due, func(a, b machine.Timer) int {
		if c := a.At.Compare(b.At); c != 0 {
			return c
		}
		return int(a.Seq) - int(b.Seq)
	}), true
}

// ErrorName is an error code as scenarios show it.
func ErrorName(code int16) string {
	if code == 0 {
		return "OK"
	}
	return fmt.Sprintf("%s (%d)", kerr.TypedErrorForCode(code).Message, code)
}
