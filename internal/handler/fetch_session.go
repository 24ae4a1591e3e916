package handler

import (
	"cmp"
	"container/list"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
	"muster/internal/partition"
	"muster/internal/protocol"
)

// Session epochs with a meaning of their own (KIP-227).
const (
	epochFinal   = -1 // no session, or the end of one
	epochInitial = 0  // a full fetch that wants a session
)

// sessionIdle is how long a session must have been idle before another may
// take its place.
const sessionIdle = 2 * time.Minute

const (
	// sessionBudget bounds the memory of all sessions. Partitions need not exist
	// to be part of one.
	sessionBudget = 128 << 20
	// sessionPartSize is about the memory of a partition in a session besides
	// its topic's name.
	sessionPartSize = 288
)

// sessions remembers incremental fetch sessions. Fetches that have none, or have just
// looked theirs up, do not meet here: what a session holds has a lock of its own, which
// is taken before that of the sessions.
type sessions struct {
	slots  int
	budget int // of bytes
	now    func() time.Time

	mu    sync.Mutex
	byID  map[int32]*session
	used  *list.List // of *session, least recently used first
	bytes int        // of all sessions, as far as they were counted
}

// session is what a client and the broker agreed on: which partitions are
// fetched from where, and what the client last heard of each.
type session struct {
	id    int32
	owner auth.Principal
	byID  bool // topics are named by id

	mu    sync.Mutex
	epoch int32 // that the next request must have
	parts map[sessionKey]*list.Element
	order *list.List // of *sessionPart; a partition with data goes to the end
	bytes int
	peak  int // of partitions since parts was made

	// Under the lock of the sessions.
	place   *list.Element
	last    time.Time
	counted int // of its bytes, in those of all sessions
}

type sessionKey struct {
	topic   string
	topicID [16]byte
	index   int32
}

// sessionPart is a partition in a session.
type sessionPart struct {
	key                                 sessionKey
	name                                string // of a topic that is named by id, once it is known
	spec                                partition.Fetch
	answered                            bool
	highWatermark, lastStable, logStart int64
}

func newSessions(slots int, now func() time.Time) *sessions {
	return &sessions{slots: slots, budget: sessionBudget, now: now, byID: map[int32]*session{}, used: list.New()}
}

// fetchTurn is one request's part in a session, or without one.
type fetchTurn struct {
	owner       *sessions
	session     *session // nil without
	id          int32
	incremental bool
	parts       []fetchPart
}

// begin looks at a request's session fields and returns what it has to read. An
// error is a *kerr.Error for the client, or protocol.ErrMemory. A session is only its
// owner's: whoever guessed its id would learn names of topics.
func (s *sessions) begin(req *kmsg.FetchRequest, m protocol.Memory, owner auth.Principal) (*fetchTurn, error) {
	if named := countNamed(req); !m.Hold(named * fetchPartWork) {
		return nil, protocol.ErrMemory
	}
	sess := s.find(req.SessionID, owner)
	if req.Version < 7 || req.SessionEpoch == epochFinal || req.SessionEpoch == epochInitial {
		if sess != nil {
			s.end(sess)
		}
		turn := &fetchTurn{owner: s, parts: requested(req)}
		if req.Version >= 7 && req.SessionEpoch == epochInitial {
			if turn.session = s.create(req, turn.parts, owner); turn.session != nil {
				turn.id = turn.session.id
			}
		}
		return turn, nil
	}
	if sess == nil {
		return nil, kerr.FetchSessionIDNotFound
	}
	sess.mu.Lock()
	defer sess.mu.Unlock()
	switch {
	case sess.epoch != req.SessionEpoch:
		return nil, kerr.InvalidFetchSessionEpoch
	case sess.byID != (req.Version >= 13):
		return nil, kerr.FetchSessionTopicIDError
	case !m.Hold(sess.order.Len() * fetchPartWork):
		return nil, protocol.ErrMemory
	}
	sess.update(req)
	if !s.touch(sess) {
		return nil, kerr.FetchSessionIDNotFound // The client then asks in full.
	}
	return &fetchTurn{owner: s, session: sess, id: sess.id, incremental: true, parts: sess.list()}, nil
}

// find returns a session of its owner, nil if there is none.
func (s *sessions) find(id int32, owner auth.Principal) *session {
	if id == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if sess := s.byID[id]; sess != nil && sess.owner == owner {
		return sess
	}
	return nil
}

// touch notes that a session was used, and how much memory it has now. A session that
// has become too large is dropped, which it says by false, as of one that is gone.
func (s *sessions) touch(sess *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID[sess.id] != sess {
		return false
	}
	sess.last = s.now()
	s.used.MoveToBack(sess.place)
	s.bytes += sess.bytes - sess.counted
	sess.counted = sess.bytes
	if !s.makeRoom(0, 0) {
		s.drop(sess)
		return false
	}
	return true
}

// create makes a session if there is room, or if others are long idle. A client
// without session fetches in full every time, which is only slower.
func (s *sessions) create(req *kmsg.FetchRequest, parts []fetchPart, owner auth.Principal) *session {
	if len(parts) == 0 || !s.hasRoom(parts) {
		return nil
	}
	sess := &session{owner: owner, epoch: 1, byID: req.Version >= 13, parts: map[sessionKey]*list.Element{}, order: list.New()}
	for i := range parts {
		sess.put(sessionKey{parts[i].topic, parts[i].topicID, parts[i].index}, parts[i].spec)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.makeRoom(1, sess.bytes) {
		return nil // Others were faster.
	}
	for sess.id == 0 || s.byID[sess.id] != nil {
		sess.id = rand.Int32()
	}
	s.byID[sess.id] = sess
	s.bytes += sess.bytes
	sess.counted = sess.bytes
	sess.place = s.used.PushBack(sess)
	sess.last = s.now()
	return sess
}

// hasRoom says whether one more session fits in, before it is made.
func (s *sessions) hasRoom(parts []fetchPart) bool {
	bytes := 0
	for i := range parts {
		bytes += partBytes(parts[i].topic)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.makeRoom(1, bytes)
}

// makeRoom drops sessions that are long idle until so many more sessions and bytes
// fit in; false says that they do not.
func (s *sessions) makeRoom(sessions, bytes int) bool {
	for len(s.byID)+sessions > s.slots || s.bytes+bytes > s.budget {
		oldest := s.used.Front()
		if oldest == nil || s.now().Sub(oldest.Value.(*session).last) < sessionIdle {
			return false
		}
		s.drop(oldest.Value.(*session))
	}
	return true
}

// end drops a session, unless that has happened.
func (s *sessions) end(sess *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID[sess.id] == sess {
		s.drop(sess)
	}
}

func (s *sessions) drop(sess *session) {
	delete(s.byID, sess.id)
	s.used.Remove(sess.place)
	s.bytes -= sess.counted
}

// partBytes is the memory of a partition in a session.
func partBytes(topic string) int { return sessionPartSize + len(topic) }

// update applies an incremental request.
func (sess *session) update(req *kmsg.FetchRequest) {
	if sess.epoch == math.MaxInt32 {
		sess.epoch = 0
	}
	sess.epoch++
	for i := range req.Topics {
		t := &req.Topics[i]
		for j := range t.Partitions {
			sess.put(sessionKey{t.Topic, t.TopicID, t.Partitions[j].Partition}, spec(&t.Partitions[j]))
		}
	}
	for i := range req.ForgottenTopics {
		t := &req.ForgottenTopics[i]
		for _, index := range t.Partitions {
			key := sessionKey{t.Topic, t.TopicID, index}
			if e := sess.parts[key]; e != nil {
				sess.order.Remove(e)
				delete(sess.parts, key)
				sess.bytes -= partBytes(key.topic)
			}
		}
	}
	sess.shrink()
}

// shrink makes the map anew when most of what it had was forgotten: a map keeps
// its memory.
func (sess *session) shrink() {
	if sess.peak < fewNamed || len(sess.parts) > sess.peak/4 {
		return
	}
	sess.peak = len(sess.parts)
	sess.parts = make(map[sessionKey]*list.Element, sess.peak)
	for e := sess.order.Front(); e != nil; e = e.Next() {
		sess.parts[e.Value.(*sessionPart).key] = e
	}
}

func (sess *session) put(key sessionKey, spec partition.Fetch) {
	if e := sess.parts[key]; e != nil {
		e.Value.(*sessionPart).spec = spec
		return
	}
	sess.parts[key] = sess.order.PushBack(&sessionPart{key: key, spec: spec})
	sess.bytes += partBytes(key.topic)
	sess.peak = max(sess.peak, len(sess.parts))
}

func (sess *session) list() []fetchPart {
	parts := make([]fetchPart, 0, sess.order.Len())
	for e := sess.order.Front(); e != nil; e = e.Next() {
		p := e.Value.(*sessionPart)
		parts = append(parts, fetchPart{topic: cmp.Or(p.key.topic, p.name), topicID: p.key.topicID, index: p.key.index, spec: p.spec})
	}
	return parts
}

// finish calls add with the partitions that belong into the answer: all of them
// in a full fetch, in an incremental one those about which there is news. It
// releases the records of the others, of which there are none.
func (t *fetchTurn) finish(parts []fetchPart, add func(*fetchPart)) {
	if t.session == nil {
		for i := range parts {
			add(&parts[i])
		}
		return
	}
	t.session.mu.Lock()
	defer t.session.mu.Unlock()
	for i := range parts {
		p := &parts[i]
		key := sessionKey{p.topic, p.topicID, p.index}
		if t.session.byID {
			key.topic = ""
		}
		news := t.session.heard(key, p)
		if !t.incremental || news {
			add(p)
		}
	}
}

// heard notes what the client is about to hear of a partition, and says whether
// it is news.
func (sess *session) heard(key sessionKey, p *fetchPart) bool {
	e := sess.parts[key]
	if e == nil {
		return true // Forgotten by a later request on the same session.
	}
	sp, r := e.Value.(*sessionPart), &p.result
	sp.name = p.topic
	news := !sp.answered || r.Err != nil || r.Diverging != nil || r.Records.Len > 0 ||
		r.HighWatermark != sp.highWatermark || r.LastStableOffset != sp.lastStable || r.LogStartOffset != sp.logStart
	// An error is told until it is gone.
	sp.answered = r.Err == nil
	sp.highWatermark, sp.lastStable, sp.logStart = r.HighWatermark, r.LastStableOffset, r.LogStartOffset
	if r.Records.Len > 0 {
		sess.order.MoveToBack(e)
	}
	return news
}
