package sim

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"

	"muster/internal/group/schema"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// part is a partition of a topic, by the topic's id.
type part struct {
	topic metadata.TopicID
	n     int32
}

func compareParts(a, b part) int {
	return cmp.Or(bytes.Compare(a.topic[:], b.topic[:]), cmp.Compare(a.n, b.n))
}

// roster is what the records of a consumer group say, read without the core.
type roster struct {
	epoch, target       int32
	hasEpoch, hasTarget bool
	members             map[string]rosterMember
	regexes             map[string][]string
}

// rosterMember is what they say of a member. Its maps are never changed, but
// replaced.
type rosterMember struct {
	says     *schema.ConsumerMember
	target   map[part]bool
	stored   bool // there is a target
	current  *schema.ConsumerCurrent
	assigned map[part]int32 // since which epoch
	pending  map[part]int32
	written  uint64 // the step that has written where it has got to
}

func newRoster() *roster {
	return &roster{epoch: 1, target: 1, members: map[string]rosterMember{}, regexes: map[string][]string{}}
}

func (r *roster) clone() *roster {
	if r == nil {
		return newRoster()
	}
	c := *r
	c.members, c.regexes = maps.Clone(r.members), maps.Clone(r.regexes)
	return &c
}

func cloneRosters(all map[string]*roster) map[string]*roster {
	out := make(map[string]*roster, len(all))
	for id, r := range all {
		out[id] = r.clone()
	}
	return out
}

// isGone says that no record is left.
func (r *roster) isGone() bool {
	return r == nil || !r.hasEpoch && !r.hasTarget && len(r.members) == 0 && len(r.regexes) == 0
}

// applyRoster applies a record, and says whether it is of a consumer group.
func applyRoster(all map[string]*roster, rec machine.Record, seq uint64) bool {
	id := consumerGroupOf(rec)
	if id == "" {
		return false
	}
	if all[id] == nil {
		all[id] = newRoster()
	}
	all[id].apply(rec, seq)
	return true
}

func (r *roster) apply(rec machine.Record, seq uint64) {
	switch rec := rec.(type) {
	case *schema.ConsumerEpochRecord:
		if r.hasEpoch = rec.Value != nil; r.hasEpoch {
			r.epoch = rec.Value.Epoch
		} else {
			r.epoch = 1
		}
	case *schema.ConsumerTargetEpochRecord:
		if r.hasTarget = rec.Value != nil; r.hasTarget {
			r.target = rec.Value.Epoch
		} else {
			r.target = 1
		}
	case *schema.ConsumerMemberRecord:
		r.change(rec.Member, func(m *rosterMember) { m.says = rec.Value })
	case *schema.ConsumerTargetRecord:
		r.change(rec.Member, func(m *rosterMember) {
			m.stored, m.target = rec.Value != nil, map[part]bool{}
			if m.stored {
				m.target = partsOf(rec.Value.Assigned)
			}
		})
	case *schema.ConsumerCurrentRecord:
		r.change(rec.Member, func(m *rosterMember) {
			m.current, m.assigned, m.pending, m.written = rec.Value, nil, nil, seq
			if rec.Value != nil {
				m.assigned, m.pending = heldOf(rec.Value.Assigned), heldOf(rec.Value.Pending)
			}
		})
	case *schema.ConsumerRegexRecord:
		if delete(r.regexes, rec.Regex); rec.Value != nil {
			r.regexes[rec.Regex] = rec.Value.Topics
		}
	}
}

func (r *roster) change(id string, change func(*rosterMember)) {
	m := r.members[id]
	change(&m)
	if r.members[id] = m; m.says == nil && m.current == nil && !m.stored {
		delete(r.members, id)
	}
}

// consumerGroupOf returns which group a record is about, "" if it is not a consumer
// group's.
func consumerGroupOf(r machine.Record) string {
	switch r.(type) {
	case *schema.ConsumerEpochRecord, *schema.ConsumerTopicsRecord, *schema.ConsumerMemberRecord, *schema.ConsumerTargetEpochRecord,
		*schema.ConsumerTargetRecord, *schema.ConsumerCurrentRecord, *schema.ConsumerRegexRecord:
		return groupOf(r)
	}
	return ""
}

func partsOf(topics []schema.TopicPartitions) map[part]bool {
	out := map[part]bool{}
	for _, t := range topics {
		for _, n := range t.Partitions {
			out[part{t.Topic, n}] = true
		}
	}
	return out
}

func heldOf(topics []schema.OwnedPartitions) map[part]int32 {
	out := map[part]int32{}
	for _, t := range topics {
		for i, n := range t.Partitions {
			out[part{t.Topic, n}] = t.Epochs[i]
		}
	}
	return out
}

func sortedParts[V any](set map[part]V) []part {
	return partsThat(set, func(part) bool { return true })
}

// partsThat lists some of the partitions in order, most often none.
func partsThat[V any](set map[part]V, which func(part) bool) []part {
	var out []part
	for p := range set {
		if which(p) {
			if out == nil {
				out = make([]part, 0, len(set))
			}
			out = append(out, p)
		}
	}
	slices.SortFunc(out, compareParts)
	return out
}

// ids lists the members in order.
func (r *roster) ids() []string {
	out := make([]string, 0, len(r.members))
	for id := range r.members {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

// static is who holds an instance id, "" if no one does.
func (r *roster) static(instance string) string {
	for _, id := range r.ids() {
		if says := r.members[id].says; says != nil && says.Instance != nil && *says.Instance == instance {
			return id
		}
	}
	return ""
}

// epoch is the member's.
func (m *rosterMember) epoch() int32 {
	if m.current == nil {
		return 0
	}
	return m.current.Epoch
}

func (m *rosterMember) state() int8 {
	if m.current == nil {
		return memberStable
	}
	return m.current.State
}

// since is in which epoch the member was given a partition that it has.
func (m *rosterMember) since(p part) (int32, bool) {
	if e, ok := m.assigned[p]; ok {
		return e, true
	}
	e, ok := m.pending[p]
	return e, ok
}

// The states of members, by Kafka's numbers.
const (
	memberStable     = 0
	memberUnrevoked  = 1
	memberUnreleased = 2
)

// state is Kafka's name of the group's.
func (r *roster) state() string {
	switch {
	case len(r.members) == 0:
		return stateEmpty
	case r.epoch > r.target:
		return "Assigning"
	}
	for _, m := range r.members {
		if m.state() != memberStable || m.epoch() != r.target {
			return "Reconciling"
		}
	}
	return stateStable
}

// names lists the topics that a member subscribes to, whether they exist or not.
func (r *roster) names(m *rosterMember) []string {
	out := slices.Clone(m.says.Topics)
	if m.says.Regex != nil {
		out = append(out, r.regexes[*m.says.Regex]...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (r *roster) subscribes(topic string) bool {
	for _, m := range r.members {
		if slices.Contains(r.names(&m), topic) {
			return true
		}
	}
	return false
}

// isConsumers says whether a group is of the consumer protocol, by its name.
func isConsumers(id string) bool { return strings.HasPrefix(id, consumersPrefix) }

const consumersPrefix = "consumers-"

func holdsPart(set map[part]int32, p part) bool {
	_, ok := set[p]
	return ok
}
