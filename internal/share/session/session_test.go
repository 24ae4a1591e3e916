package session

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/assert"
	"muster/internal/metadata"
)

var topic = metadata.TopicID{15: 1}

func places(indexes ...int32) (out []Place) {
	for _, i := range indexes {
		out = append(out, Place{topic, i})
	}
	return out
}

// client is a member on a connection.
type client struct {
	t    *testing.T
	s    *Sessions
	r    Request
	next int32 // epoch
}

func join(t *testing.T, s *Sessions, member string) *client {
	return &client{t: t, s: s, r: Request{Key: Key{"g", member}, Owner: "User:" + member, Conn: new(Conn)}}
}

// open begins a session, and shows the partitions, "+" for those that are fresh.
func (c *client) open(add ...int32) string {
	r := c.r
	r.Add = places(add...)
	parts, err := c.s.Open(r)
	c.next = 1
	return show(parts, err)
}

func (c *client) fetch(add, forget []int32) string {
	r := c.r
	r.Epoch, r.Add, r.Forget = c.next, places(add...), places(forget...)
	parts, err := c.s.Next(r)
	if err == nil {
		c.next++
	}
	return show(parts, err)
}

func (c *client) end() string { return show(nil, c.s.End(c.r)) }

func show(parts []Part, err *kerr.Error) string {
	if err != nil {
		return err.Message
	}
	var out []string
	for _, p := range parts {
		fresh := ""
		if p.Fresh {
			fresh = "+"
		}
		out = append(out, fmt.Sprint(p.Index, fresh))
	}
	return fmt.Sprint(out)
}

func TestPartitionsAreAddedAndForgottenAndTheFirstIsAnotherEachTime(t *testing.T) {
	c := join(t, New(10), "m")
	assert.Equal(t, c.open(0, 1, 2), "[0+ 1+ 2+]")
	assert.Equal(t, c.fetch(nil, nil), "[1 2 0]")
	assert.Equal(t, c.fetch([]int32{3, 0}, []int32{1}), "[3+ 0 2]")
	assert.Equal(t, c.fetch(nil, nil), "[0 2 3]")
	assert.Equal(t, c.fetch([]int32{5}, []int32{5, 0, 2, 3}), "[]", "what is added and forgotten")
	assert.Equal(t, c.fetch([]int32{0}, nil), "[0+]", "what comes again")
}

func TestEpochsOfASessionFollowOneAnother(t *testing.T) {
	s := New(10)
	c := join(t, s, "m")
	assert.Equal(t, c.fetch(nil, nil), "SHARE_SESSION_NOT_FOUND", "before there is one")
	c.open(0)
	for _, wrong := range []int32{2, 7, math.MaxInt32, -5} {
		c.next = wrong
		assert.Equal(t, c.fetch(nil, nil), "INVALID_SHARE_SESSION_EPOCH", "%d", wrong)
		r := c.r
		r.Epoch = wrong
		assert.Equal(t, show(nil, s.Advance(r)), "INVALID_SHARE_SESSION_EPOCH", "%d", wrong)
	}
	c.next = 1
	assert.Equal(t, c.fetch(nil, nil), "[0]")
	r := c.r
	r.Epoch = 2
	assert.Equal(t, show(nil, s.Advance(r)), "[]")
	assert.Equal(t, show(nil, s.Advance(r)), "INVALID_SHARE_SESSION_EPOCH", "the same epoch again")
	s.all[c.r.Key].epoch, c.next = math.MaxInt32, math.MaxInt32
	assert.Equal(t, c.fetch(nil, nil), "[0]", "the last epoch")
	c.next = 1
	assert.Equal(t, c.fetch(nil, nil), "[0]", "the one after it")
	assert.Equal(t, c.end(), "[]")
	assert.Equal(t, c.end(), "SHARE_SESSION_NOT_FOUND", "another end")
	assert.Equal(t, s.Len(), 0, "sessions")
}

func TestTheEndOfAConnectionIsThatOfItsSessionsAlone(t *testing.T) {
	s := New(10)
	a, b, c := join(t, s, "a"), join(t, s, "b"), join(t, s, "c")
	b.r.Conn = a.r.Conn
	for _, m := range []*client{b, a, c} {
		m.open(0)
	}
	if got := s.Disconnect(a.r.Conn); !slices.Equal(got, []Ended{{Key{"g", "a"}, "User:a"}, {Key{"g", "b"}, "User:b"}}) {
		t.Errorf("ended %v", got)
	}
	assert.Equal(t, a.fetch(nil, nil), "SHARE_SESSION_NOT_FOUND")
	assert.Equal(t, c.fetch(nil, nil), "[0]")
	assert.Equal(t, len(s.Disconnect(a.r.Conn)), 0, "sessions that end twice")
	assert.True(t, s.Has("g"), "the group has a session")
	assert.Equal(t, a.open(0), "SHARE_SESSION_LIMIT_REACHED", "a session on a connection that has ended")
}

func TestASessionThatHasMovedOnOutlivesItsConnection(t *testing.T) {
	s := New(10)
	for _, how := range []string{"begun anew", "gone on"} {
		c := join(t, s, "m")
		c.open(0)
		old := c.r.Conn
		if c.r.Conn = new(Conn); how == "gone on" {
			assert.Equal(t, c.fetch(nil, nil), "[0]")
		} else {
			c.open(0)
		}
		assert.Equal(t, len(s.Disconnect(old)), 0, "sessions that end, %s", how)
		assert.Equal(t, c.fetch(nil, nil), "[0]", "%s", how)
		assert.Equal(t, len(s.Disconnect(c.r.Conn)), 1, "sessions that end with the other connection")
	}
}

func TestASessionIsItsOwners(t *testing.T) {
	s := New(10)
	c := join(t, s, "m")
	c.open(0)
	other := join(t, s, "m")
	other.r.Owner, other.next = "User:other", 1
	assert.Equal(t, other.fetch(nil, nil), "SHARE_SESSION_NOT_FOUND")
	assert.Equal(t, other.end(), "SHARE_SESSION_NOT_FOUND")
	assert.Equal(t, other.open(0), "GROUP_AUTHORIZATION_FAILED", "a session in the place of another's")
	assert.Equal(t, c.fetch(nil, nil), "[0]")
	ended := s.Disconnect(c.r.Conn)
	assert.MustEqual(t, len(ended), 1)
	assert.Equal(t, other.open(0), "[0+]", "once it has ended")
	assert.False(t, s.GoesOn(ended[0]), "another's session is taken for the member's")
	assert.Equal(t, other.end(), "[]")
	c = join(t, s, "m")
	c.open(0)
	assert.True(t, s.GoesOn(ended[0]), "the member's next session is not known")
}

func TestSessionsAreBoundedInAllAndForEachPrincipal(t *testing.T) {
	s := New(8)
	conn := new(Conn)
	open := func(owner, member string) string {
		parts, err := s.Open(Request{Key: Key{"g", member}, Owner: owner, Conn: conn, Add: places(0)})
		return show(parts, err)
	}
	for i := range 6 {
		assert.Equal(t, open("greedy", fmt.Sprint("g", i)), "[0+]")
	}
	assert.Equal(t, open("greedy", "one more"), "SHARE_SESSION_LIMIT_REACHED")
	assert.Equal(t, open("greedy", "g0"), "[0+]", "one in the place of an old one")
	assert.Equal(t, open("a", "a"), "[0+]")
	assert.Equal(t, open("b", "b"), "[0+]")
	assert.Equal(t, open("c", "c"), "SHARE_SESSION_LIMIT_REACHED")
	s.Disconnect(conn)
	assert.Equal(t, s.Len(), 0, "sessions")
	assert.Equal(t, s.bytes.Used(), 0, "bytes")
	assert.False(t, s.Has("g"), "the group has a session")
}

// A member may name partitions that do not exist, as many as its requests hold.
func TestWhatSessionsNameIsBounded(t *testing.T) {
	s := New(1000)
	conn := new(Conn)
	const each = 10_000
	add := make([]Place, each)
	opened := 0
	for i := range 100 {
		for j := range add {
			add[j] = Place{topic, int32(j)}
		}
		if _, err := s.Open(Request{Key: Key{"g", fmt.Sprint(i)}, Owner: "greedy", Conn: conn, Add: add}); err == nil {
			opened++
		} else {
			assert.MustTrue(t, err == kerr.ShareSessionLimitReached, "%v", err)
		}
	}
	assert.True(t, opened*each*partSize > budget/2 && opened*each*partSize <= budget*3/4, "%d sessions", opened)
	last := Request{Key: Key{"g", "0"}, Owner: "greedy", Conn: conn}
	for last.Epoch = 1; ; last.Epoch++ { // One that grows bit by bit ends.
		last.Add = nil
		for j := range int32(each) {
			last.Add = append(last.Add, Place{topic, last.Epoch*each + j})
		}
		if _, err := s.Next(last); err != nil {
			assert.True(t, err == kerr.ShareSessionNotFound, "%v", err)
			break
		}
	}
	_, err := s.Open(Request{Key: Key{"g", "other"}, Owner: "other", Conn: conn, Add: places(0)})
	assert.True(t, err == nil, "others have no room: %v", err)
	s.Disconnect(conn)
	assert.Equal(t, s.bytes.Used(), 0, "bytes")
}
