// Package handler answers requests: one file per API key, named by it.
//
// table.go is the one list of keys and versions that muster serves; ApiVersions
// and docs/compatibility.md derive from it. A handler decodes nothing and
// decides little: it translates between kmsg's structs and the packages that
// own the state (partitions, metadata, groups), and turns their errors into
// Kafka's codes.
package handler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/audit"
	"muster/internal/auth"
	"muster/internal/convert"
	"muster/internal/coordinator"
	"muster/internal/metadata"
	"muster/internal/meter"
	"muster/internal/partition"
	"muster/internal/protocol"
	"muster/internal/quota"
	"muster/internal/store"
)

// Controller changes the cluster's metadata. Errors that a client caused are
// *metadata.Refused.
type Controller interface {
	Image() *metadata.Image
	CreateTopics(ctx context.Context, reqs []metadata.NewTopic, validateOnly bool) ([]*metadata.Topic, []error)
	DeleteTopics(ctx context.Context, names []string) []error
	GrowTopic(ctx context.Context, name string, count int32, leaders []int32, validateOnly bool) error
	// Reassign answers each partition by itself, in their order.
	Reassign(ctx context.Context, moves []metadata.Reassignment) []error
	// LogEndOffset is that of the metadata.
	LogEndOffset() int64
	AlterTopic(ctx context.Context, name string, changes []metadata.ConfigChange, replace, validateOnly bool) error
	// SetLayout writes down that a topic was converted.
	SetLayout(ctx context.Context, name, layout string) error
	AlterGroup(ctx context.Context, group string, changes []metadata.ConfigChange, replace, validateOnly bool) error
	AlterBroker(ctx context.Context, changes []metadata.ConfigChange, replace, validateOnly bool) error
	// AlterUsers, CreateRules, DeleteRules and AlterQuotas answer each change by itself,
	// in their order.
	AlterUsers(ctx context.Context, changes []metadata.UserChange) []error
	CreateRules(ctx context.Context, rules []auth.Rule) []error
	DeleteRules(ctx context.Context, filters []auth.Filter) ([][]auth.Rule, []error)
	AlterQuotas(ctx context.Context, changes []metadata.QuotaChange, validateOnly bool) []error
	// RotateSecret gives the brokers another secret to know each other by.
	RotateSecret(ctx context.Context, now time.Time) error
	NextProducerID(ctx context.Context) (int64, error)
	// NextProducerIDs returns several, for transactional producers.
	NextProducerIDs(ctx context.Context) (first int64, count int32, err error)
}

// Partitions finds the partitions that this broker leads.
type Partitions interface {
	Get(topic string, index int32) *partition.Partition
}

// Options of a handler.
type Options struct {
	NodeID       int32
	Controller   Controller
	Partitions   Partitions
	Groups       Coordinator
	Transactions Coordinator
	ShareStates  Coordinator     // of the state of share partitions
	Shares       *Shares         // nil where there are no share groups
	Native       Native          // nil for a store without groups of its own
	Counter      Counter         // nil for a store whose offsets have no gaps
	Checker      store.Checker   // nil for a store that cannot check its logs
	Converter    store.Converter // nil for a store that cannot convert its logs
	Lengths      store.Lengths   // nil for a store whose offsets have no gaps
	Logger       *slog.Logger
	Now          func() time.Time
	// Tail says how many offsets at the end of a partition are of nothing to read, in
	// which a reader is not behind. Nil if no one knows.
	Tail func(p *partition.Partition, topic string, index int32, end int64) int64
	// Marked is told of transactions that someone ended in partitions, past their
	// coordinator. It must not block. Nil if no one wants to know.
	Marked func(from coordinator.Client, m Marked)
	// Denied is told of each request that was denied something, once for each
	// resource. It must not block. Nil if no one wants to know.
	Denied func(auth.Request)
	// Audit is told what requests have changed, and by whom. It must not block. Nil if
	// no one wants to know.
	Audit func(audit.Entry)
	// Topics counts what is produced to topics and fetched from them; nil for no one
	// who wants to know.
	Topics *meter.Topics
	// Throttled is told for how long a client has to wait, and of which kind the quota
	// is. It must not block. Nil if no one wants to know.
	Throttled func(kind quota.Kind, wait time.Duration)
	// Panicked is told of each panic that ends with a request, beside those of connections. Nil
	// if no one wants to know.
	Panicked     func()
	SessionSlots int // max.incremental.fetch.session.cache.slots
	// RemoteStore says that the store is across a network, so that partitions are better
	// read at the same time than one after the other.
	RemoteStore bool
	// LogDir names the data folder, or what there is in its place, and Space tells
	// its size and what is free.
	LogDir string
	Space  func() (total, usable int64)
}

// Handler serves all requests.
type Handler struct {
	opts      Options
	sessions  *sessions
	records   records
	lately    lately
	denials   denials
	limits    *limits
	fetched   *fetched
	checking  chan struct{} // held by the request that has a partition checked, or converts one
	converter *convert.Converter
}

// New returns a handler.
func New(opts Options) *Handler {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Panicked == nil {
		opts.Panicked = func() {}
	}
	h := &Handler{opts: opts, sessions: newSessions(opts.SessionSlots, opts.Now), records: records{free: recordBudget}, limits: newLimits(), fetched: newFetched(opts.Now), checking: make(chan struct{}, 1)}
	h.converter = convert.New(convert.Options{
		Store: opts.Converter, Partition: h.find, Groups: opts.Groups, Assigned: AssignedPartitions, Committed: h.noteCommitted,
		SetLayout: func(ctx context.Context, topic, layout string) error {
			return opts.Controller.SetLayout(ctx, topic, layout)
		},
		Turn: h.checking, Now: opts.Now, Logger: opts.Logger,
	})
	return h
}

// Origin is where a request comes from.
type Origin struct {
	Listener string
	Host     string
	// Principal is who sent it, as of when it came: a connection may log in again while
	// requests are on their way. Empty is auth.Anonymous.
	Principal auth.Principal
	// Groups are those that it is in, if a token said so.
	Groups auth.Groups
	// Broker says that the connection has logged in as a broker of the cluster.
	Broker bool
	// Session is the connection's login, nil where no one logs in. Illegal says that the
	// request comes when that does not allow it, and is to be told so.
	Session Session
	Illegal bool
	// Via is the way that it came, empty for the Kafka protocol, and Denied is told what
	// it was denied in place of the one of the options.
	Via    audit.Via
	Denied func(auth.Request)
	// Number is that of the connection. It says where to count, and means nothing else.
	Number uint32
	// LastID is where the client id of the connection's last request is kept, which
	// mostly is that of the next; nil if nowhere.
	LastID *string
	Conn   Conn // nil where no one counts memory and no one hangs up
}

// Conn is the connection of the request that is being handled.
type Conn interface {
	// Hold counts memory that the request takes besides its frame, until it has
	// been handled; false says that there is no room for it.
	Hold(bytes int) bool
	// Release gives up the frame before the request has been handled.
	Release()
	// Park says that the request waits for what other clients do, and what it
	// keeps meanwhile; false says that there is no room for it to wait. The
	// context ends when the client hangs up, and done must be called when the
	// wait is over.
	Park(ctx context.Context, bytes int) (parked context.Context, done func(), ok bool)
	// Mute has the connection not be read for a time after the request.
	Mute(d time.Duration)
	// Place is where something is kept from one request of the connection to the next,
	// which come one at a time; nil if there is no such place.
	Place() *any
}

// no one is the connection of a request that came from none.
type nobody struct{}

func (nobody) Hold(int) bool      { return true }
func (nobody) Release()           {}
func (nobody) Mute(time.Duration) {}
func (nobody) Place() *any        { return nil }
func (nobody) Park(ctx context.Context, _ int) (context.Context, func(), bool) {
	return ctx, func() {}, true
}

// call is one request on its way through a handler.
type call struct {
	protocol.Request
	origin Origin
	req    kmsg.Request // nil for handlers that read the body themselves
	image  *metadata.Image
	own    bool // the request is this broker's own
	h      *Handler
	rights rights
	usage  *usage // nil if its time does not count
}

// longestKept is the longest client id that is kept for the next request.
const longestKept = 256

// Serve answers the request in frame. An error ends the connection: the client
// broke the protocol in a way that has no answer.
func (h *Handler) Serve(ctx context.Context, origin Origin, frame []byte) (*protocol.Response, error) {
	if origin.Conn == nil {
		origin.Conn = nobody{}
	}
	r, err := protocol.ParseHeader(frame)
	if err != nil {
		return nil, err
	}
	e := entryFor(r.Key)
	if origin.Broker {
		e = entryForBroker(r.Key)
	}
	if e == nil {
		return nil, fmt.Errorf("request with API key %d, which is not served", r.Key)
	}
	if r.Version < e.serveMin() || r.Version > e.Max {
		if r.Key == protocol.KeyApiVersions {
			return r.Encode(unsupportedApiVersions()), nil
		}
		return nil, fmt.Errorf("%s request of version %d; served are %d to %d", e.Name(), r.Version, e.serveMin(), e.Max)
	}
	if origin.LastID != nil {
		r.ClientID = *origin.LastID
	}
	if err := r.Open(); err != nil {
		return nil, err
	}
	if origin.LastID != nil && len(r.ClientID) <= longestKept {
		*origin.LastID = r.ClientID
	}
	r.Memory = origin.Conn
	c := &call{Request: r, origin: origin, image: h.opts.Controller.Image(), h: h}
	if err := c.checkBetween(); err != nil {
		return nil, err
	}
	c.measure()
	if e.raw != nil && !origin.Illegal {
		return e.raw(h, ctx, c)
	}
	if c.req, err = c.Decode(); err != nil {
		return nil, err
	}
	if origin.Illegal {
		return c.Encode(illegalState(c.req)), nil
	}
	if e.between && c.fromBroker() {
		return h.answerLater(ctx, e, c), nil
	}
	resp, err := e.serve(h, ctx, c)
	if err != nil || resp == nil {
		return nil, err
	}
	h.tellChanges(c, resp)
	c.chargeAnswer(resp)
	return c.Encode(resp), nil
}

// code returns the wire code of an error, and its text for people if it says more than the
// code does: for that clients have words of their own.
func (h *Handler) code(err error) (int16, *string) {
	if err == nil {
		return 0, nil
	}
	msg := err.Error()
	var refused *metadata.Refused
	if errors.As(err, &refused) {
		return refused.Code.Code, &msg
	}
	var wire *kerr.Error
	if errors.As(err, &wire) {
		if msg == wire.Error() {
			return wire.Code, nil
		}
		return wire.Code, &msg
	}
	if errors.Is(err, store.ErrStorage) || errors.Is(err, store.ErrFailed) {
		h.opts.Logger.Error("request failed", "error", err)
		return kerr.KafkaStorageError.Code, &msg
	}
	h.opts.Logger.Error("request failed", "error", err)
	return kerr.UnknownServerError.Code, &msg
}

// errCode returns the wire code of an error that is decided already.
func errCode(err *kerr.Error) int16 {
	if err == nil {
		return 0
	}
	return err.Code
}

// find returns a partition, or why there is none.
func (h *Handler) find(image *metadata.Image, topic string, index int32) (*partition.Partition, *kerr.Error) {
	t := image.Topic(topic)
	if t == nil || index < 0 || int(index) >= len(t.Partitions) {
		return nil, kerr.UnknownTopicOrPartition
	}
	p := h.opts.Partitions.Get(topic, index)
	if p == nil {
		return nil, kerr.NotLeaderForPartition
	}
	return p, nil
}

// topicName resolves a topic id.
func topicName(image *metadata.Image, id [16]byte) (string, bool) {
	t := image.TopicByID(id)
	if t == nil {
		return "", false
	}
	return t.Name, true
}
