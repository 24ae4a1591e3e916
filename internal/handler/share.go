package handler

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
	"muster/internal/metadata"
	"muster/internal/protocol"
	"muster/internal/share/leader"
	shared "muster/internal/share/session"
	"muster/internal/share/window"
)

// Shares is what this broker does for members of share groups.
type Shares struct {
	*leader.Leader
	Sessions *shared.Sessions
	// Settings returns those of a group.
	Settings func(group string) leader.Settings
}

// sharer is a connection of members of share groups.
type sharer struct {
	shared.Conn
	of *Shares
}

// Ended is called when a connection has ended: its sessions do too, and what their members
// have is released.
func (m *remembered) Ended() {
	if m.share == nil {
		return
	}
	for _, e := range m.share.of.Sessions.Disconnect(&m.share.Conn) {
		if !m.share.of.Sessions.GoesOn(e) { // The member may have begun another meanwhile.
			m.share.of.Leave(e.Group, e.Member)
		}
	}
}

// shareConn is the request's connection, as sessions know it.
func (c *call) shareConn() *shared.Conn {
	m := c.remembered()
	if m.share == nil {
		m.share = &sharer{of: c.h.opts.Shares}
	}
	return &m.share.Conn
}

// sharing is what requests of members of share groups have in common.
type sharing struct {
	h      *Handler
	c      *call
	group  string
	member string
	epoch  int32
	acks   map[shared.Place][]window.Acknowledgement
	renew  bool
	all    bool           // partitions of which nothing is said are answered, too
	places []shared.Place // named by the request, each once
	said   []said
}

// said is what became of the acknowledgements of a partition.
type said struct {
	shared.Place
	outcome *leader.Outcome // nil if it is known
	err     *kerr.Error
}

// admit returns the error for a request that is not served, whatever its session.
func (c *call) admit(group, member *string) *kerr.Error {
	const longestMember = 36
	switch {
	case c.h.opts.Shares == nil:
		return kerr.UnsupportedVersion
	case group == nil || *group == "":
		return kerr.InvalidRequest
	case !c.may(auth.Read, auth.Group, *group):
		return kerr.GroupAuthorizationFailed
	case member == nil || *member == "" || len(*member) > longestMember:
		return kerr.InvalidRequest
	}
	return nil
}

// request is what the session is told.
func (s *sharing) request() shared.Request {
	return shared.Request{
		Key: shared.Key{Group: s.group, Member: s.member}, Owner: string(s.c.principal()), Conn: s.c.shareConn(), Epoch: s.epoch,
	}
}

// name takes note of a partition that the request names, and of what it says of its records.
// The last word counts about a partition that is named again.
func (s *sharing) name(topic metadata.TopicID, index int32, acks []window.Acknowledgement) {
	at := shared.Place{Topic: topic, Index: index}
	if s.acks == nil {
		s.acks = map[shared.Place][]window.Acknowledgement{}
	}
	if _, again := s.acks[at]; !again {
		s.places = append(s.places, at)
	}
	s.acks[at] = acks
}

// locate finds a share partition.
func (s *sharing) locate(image *metadata.Image, at shared.Place) (in leader.In, topic string, err *kerr.Error) {
	topic, ok := topicName(image, at.Topic)
	if !ok {
		return in, "", kerr.UnknownTopicID
	}
	if !s.c.may(auth.Read, auth.Topic, topic) {
		return in, topic, kerr.TopicAuthorizationFailed
	}
	log, err := s.h.find(image, topic, at.Index)
	if err != nil {
		return in, topic, err
	}
	return leader.In{Key: leader.Key{Group: s.group, Topic: at.Topic, Index: at.Index}, Log: log, Sparse: !image.Dense(topic)}, topic, nil
}

// acknowledge passes on what the member says of its records. What comes of it is known once it
// is stored.
func (s *sharing) acknowledge() {
	for _, at := range s.places {
		acks := s.acks[at]
		if len(acks) == 0 && !s.all {
			continue
		}
		out := said{Place: at}
		in, _, err := s.locate(s.c.image, at)
		if out.err = err; err == nil && len(acks) > 0 {
			out.outcome = s.h.opts.Shares.Acknowledge(in, s.member, acks, s.renew)
		}
		s.said = append(s.said, out)
	}
}

// release gives up what the request says of records, once it is passed on: while the request
// waits, no one counts it.
func (s *sharing) release() {
	s.acks, s.places = nil, nil
	s.c.Body = nil
	s.c.origin.Conn.Release()
}

// settle waits until it is known what came of that, or until the client has gone. If the
// session ends, it releases what the member still has.
func (s *sharing) settle(ctx context.Context) {
	var left []*leader.Outcome
	if s.epoch == shared.Final {
		defer func() { s.await(ctx, left) }()
		defer func() { left = s.h.opts.Shares.Leave(s.group, s.member) }()
	}
	var all []*leader.Outcome
	for i := range s.said {
		if o := s.said[i].outcome; o != nil {
			all = append(all, o)
		}
	}
	s.await(ctx, all)
	for i := range s.said {
		if a := &s.said[i]; a.outcome != nil {
			a.err = a.outcome.Known()
		}
	}
}

// await waits for outcomes, which come in bounded time.
func (s *sharing) await(ctx context.Context, all []*leader.Outcome) {
	if len(all) == 0 {
		return
	}
	parked, done, ok := s.c.origin.Conn.Park(ctx, len(s.said)*shareWork)
	if ok {
		defer done()
		ctx = parked
	}
	for _, o := range all {
		select {
		case <-o.Ready():
		case <-ctx.Done():
			return
		}
	}
}

// shareWork is about the memory of a partition in a request of a share group, with its place
// in the answer.
const shareWork = 512

// pause keeps a client waiting that there is no session for, as long as it would wait for
// records.
func (s *sharing) pause(ctx context.Context, wait time.Duration) {
	parked, done, ok := s.c.origin.Conn.Park(ctx, 0)
	if !ok {
		return
	}
	defer done()
	over := time.NewTimer(min(wait, longestWait))
	defer over.Stop()
	select {
	case <-over.C:
	case <-parked.Done():
	}
}

// shareHint tells who leads a partition instead of this broker; -1 if that is not known.
func (s *sharing) shareHint(topic string, index int32, err *kerr.Error) (protocol.LeaderHint, *kmsg.ShareFetchResponseNodeEndpoint) {
	hint, ok := s.h.hint(s.c.origin.Listener, topic, index, err)
	if !ok {
		return protocol.LeaderHint{ID: -1, Epoch: -1}, nil
	}
	b := kmsg.NewShareFetchResponseNodeEndpoint()
	b.NodeID, b.Host, b.Port = hint.Leader, hint.endpoint.Host, hint.endpoint.Port
	if hint.broker.Rack != "" {
		b.Rack = &hint.broker.Rack
	}
	return protocol.LeaderHint{ID: hint.Leader, Epoch: hint.LeaderEpoch}, &b
}
