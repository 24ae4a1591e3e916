package group

import (
	"fmt"
	"strings"

	"muster/internal/journal"
)

// showConsumerEntry shows what the journal says of a consumer group.
func (s *scenario) showConsumerEntry(e *journal.Entry) string {
	out := fmt.Sprintf("%s %d, now %s", e.Kind, e.Generation, e.State)
	for _, t := range e.Triggers {
		out += "; " + s.showConsumerTrigger(&t)
	}
	if more := e.TriggerN - len(e.Triggers); more > 0 {
		out += fmt.Sprintf("; %d more reasons", more)
	}
	if e.By != nil {
		out += " by " + e.By.Member
	}
	switch e.Kind {
	case journal.KindEpoch, journal.KindUpgraded, journal.KindDowngraded:
		out += fmt.Sprintf("; members %d to %d", e.Before, e.After)
	case journal.KindSettled:
		out += fmt.Sprintf("; since %s; members %d to %d; given %d of %d", e.Time.Sub(e.Started), e.Before, e.After, e.MoveN, e.PartitionN)
	case journal.KindTarget:
		out += "; by " + e.Protocol
		if e.ProtocolBefore != "" {
			out += ", before by " + e.ProtocolBefore
		}
		out += fmt.Sprintf("; moves %d of %d", e.MoveN, e.PartitionN)
	}
	return out + s.showMovements(e)
}

// showMovements shows who gives what to whom.
func (s *scenario) showMovements(e *journal.Entry) (out string) {
	for _, m := range e.Moves {
		out += fmt.Sprintf(", %s:%d %s→%s", m.Topic, m.Partition, orNobody(m.From), orNobody(m.To))
	}
	if more := e.MoveN - len(e.Moves); more > 0 && len(e.Moves) > 0 {
		out += fmt.Sprintf(", %d more", more)
	}
	for _, sh := range e.Shares {
		out += fmt.Sprintf("; %s %d to %d", sh.Member, sh.Before, sh.After)
	}
	for _, r := range e.Revokes {
		out += "; " + r.Member + " must let go of" + showRevoke(&r)
	}
	for _, l := range e.Held {
		out += fmt.Sprintf("; %s let go after %s", l.Member, l.Waited)
	}
	for _, l := range e.Slowest {
		out += fmt.Sprintf("; %s was there after %s", l.Member, l.Waited)
	}
	return out
}

func showRevoke(r *journal.Revoke) string {
	out := ""
	for _, p := range r.Parts {
		for _, n := range p.Partitions {
			out += fmt.Sprintf(" %s:%d", p.Topic, n)
		}
	}
	out += fmt.Sprintf(" (%d) within %s for", r.PartN, r.Timeout)
	for _, w := range r.For {
		out += " " + w.Member
	}
	if r.ForN == 0 {
		out += " nobody"
	}
	if more := r.ForN - len(r.For); more > 0 {
		out += fmt.Sprintf(" and %d more", more)
	}
	return out
}

func (s *scenario) showConsumerTrigger(t *journal.Trigger) string {
	out := strings.TrimSpace(fmt.Sprintf("%s %s", t.Kind, t.Member))
	if t.Instance != "" {
		out += "/" + t.Instance
	}
	if t.Was != "" {
		out += " was " + t.Was
	}
	if t.Had > 0 {
		out += fmt.Sprintf(" with %d partitions", t.Had)
	}
	if t.Silent > 0 {
		out += fmt.Sprintf(" silent for %s", t.Silent)
	}
	if t.By != nil {
		out += " by " + s.showBy(t.By)
	}
	if c := t.Change; c != nil {
		out += showChange(c)
		if c.RegexBefore != "" || c.Regex != "" {
			out += fmt.Sprintf(" /%s/→/%s/", c.RegexBefore, c.Regex)
		}
	}
	if t.Revoke != nil {
		out += fmt.Sprintf(" held%s, told %s before", showRevoke(t.Revoke), t.Revoke.Held)
	}
	if t.Topics != nil {
		for _, c := range t.Topics.List {
			out += fmt.Sprintf(" %s %s %d→%d", c.Topic, c.Kind, c.Before, c.After)
		}
		if more := t.Topics.N - len(t.Topics.List); more > 0 {
			out += fmt.Sprintf(" and %d more topics", more)
		}
	}
	if t.MaxBytes > 0 {
		out += fmt.Sprintf(" more than %d bytes", t.MaxBytes)
	}
	return out + showAt(t.At)
}

func orNobody(id string) string {
	if id == "" {
		return "nobody"
	}
	return id
}
