package group

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/classic"
)

// clientID is the client.id of a client: a' is the client a after a restart.
func clientID(who string) string { return strings.TrimRight(who, "0123456789'") }

// show shortens member ids: the first that client a is given is a#1.
func (s *scenario) show(id string) string {
	if id == "" {
		return "none"
	}
	if short, ok := s.alias[id]; ok {
		return short
	}
	return id
}

// learn notes the member id that a client was told.
func (s *scenario) learn(who, id string) {
	if id == "" {
		return
	}
	s.names[who] = id
	if len(id) > 36 {
		s.call(who, id)
	}
}

// call gives a member id a short name.
func (s *scenario) call(who, id string) {
	if s.alias[id] != "" {
		return
	}
	base := strings.TrimRight(who, "'")
	n := 1
	for _, short := range s.alias {
		if strings.HasPrefix(short, base+"#") {
			n++
		}
	}
	s.alias[id] = fmt.Sprintf("%s#%d", base, n)
}

// foresee gives a name to the id that the coordinator will make of a join, which
// the journal may tell before the client is told. The function that it returns
// takes the name back if that id was not made.
func (s *scenario) foresee(who string, req kmsg.Request) func() {
	m, ok := req.(*kmsg.JoinGroupRequest)
	if !ok || m.MemberID != "" {
		return func() {}
	}
	id := clientID(who) + "-" + classic.UUID(freshBytes(s.fresh+1))
	if m.InstanceID != nil {
		id = *m.InstanceID + "-" + classic.UUID(freshBytes(s.fresh+1))
	}
	s.call(who, id)
	return func() {
		if c := s.shard.consumer(m.Group); c != nil && (c.Member(id) != nil || s.names[who] == id) {
			return
		}
		g := s.shard.classic(m.Group)
		if g == nil || g.Members.Get(id) == nil && g.Pending[id] == nil {
			delete(s.alias, id)
		}
	}
}

// resolve replaces $a by the member id that a was last told.
func (s *scenario) resolve(v string) string {
	if name, ok := strings.CutPrefix(v, "$"); ok {
		return s.names[name]
	}
	return v
}
