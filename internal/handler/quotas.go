package handler

import (
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/metadata"
	"muster/internal/quota"
)

const (
	// bucketsAtMost is how many clients are remembered for their quotas, and
	// bucketBytes what they take at most.
	bucketsAtMost = 20_000
	bucketBytes   = 16 << 20
)

// limits counts what clients take that have quotas. Each broker counts by itself, as
// in Kafka.
type limits struct {
	mu sync.Mutex
	// known is for those that clients cannot make up: users, and client ids that
	// a quota names. Other client ids have made, so that no one who makes up any
	// number of them drives out what is known of others.
	known, made *quota.Book
}

func newLimits() *limits {
	return &limits{known: quota.NewBook(bucketsAtMost, bucketBytes), made: quota.NewBook(bucketsAtMost, bucketBytes)}
}

// share is what a client may take of something. Nil is a client without limit.
type share struct {
	limits *limits
	book   *quota.Book
	key    quota.Key
	limit  quota.Limit
	now    func() time.Time
}

// share returns what the client of a request may take. As long as no one has any
// quota that costs one comparison.
func (h *Handler) share(c *call, kind quota.Kind) *share {
	if c.image.Quotas == nil {
		return nil
	}
	return h.findShare(c, kind)
}

// quotaNames says under which name a quota is set.
var quotaNames = [...]string{
	quota.Produced: metadata.ProducerByteRate, quota.Fetched: metadata.ConsumerByteRate, quota.Mutations: metadata.ControllerMutationRate,
	quota.Requests: metadata.RequestPercentage,
}

// findShare finds the quota that counts for a client. Brokers of the cluster have
// none.
func (h *Handler) findShare(c *call, kind quota.Kind) *share {
	if c.fromBroker() {
		return nil
	}
	return h.shareOf(c.image, kind, c.user(), c.ClientID)
}

// shareOf is findShare for someone at a client.
func (h *Handler) shareOf(image *metadata.Image, kind quota.Kind, user, clientID string) *share {
	rate, whose, ok := image.Quotas.Effective(quotaNames[kind], user, clientID)
	if !ok {
		return nil
	}
	s := &share{limits: h.limits, book: h.limits.known, key: quota.Key{Kind: kind}, limit: quotaLimit(image, kind, rate), now: h.opts.Now}
	if whose.User.Named {
		s.key.HasUser, s.key.User = true, user
	}
	if whose.ClientID.Named {
		s.key.HasName, s.key.Name = true, clientID
		if whose.ClientID.Name == "" {
			s.book = h.limits.made
		}
	}
	return s
}

func quotaLimit(image *metadata.Image, kind quota.Kind, rate float64) quota.Limit {
	prefix := ""
	if kind == quota.Mutations {
		prefix = "controller."
	}
	return quota.Limit{
		PerSecond: rate, Windows: int(image.Config.Int(prefix + "quota.window.num")),
		Window: time.Duration(image.Config.Int(prefix+"quota.window.size.seconds")) * time.Second,
		Full:   kind == quota.Mutations, // Otherwise not even one could be made at first.
	}
}

// with does something with the bucket.
func (s *share) with(do func(b *quota.Bucket, now time.Time)) {
	s.limits.mu.Lock()
	defer s.limits.mu.Unlock()
	now := s.now()
	do(s.book.Bucket(s.key, s.limit, now), now)
}

// take takes what cannot be refused any more, and returns how long the client has to
// wait for it.
func (s *share) take(n int) (wait time.Duration) {
	if s == nil {
		return 0
	}
	s.with(func(b *quota.Bucket, now time.Time) { wait = b.Take(float64(n), now) })
	return wait
}

// ask takes what can be refused, if there is as much; otherwise it returns how long
// that takes.
func (s *share) ask(n int) (wait time.Duration) {
	s.with(func(b *quota.Bucket, now time.Time) { wait = b.TakeIfThere(float64(n), now) })
	return wait
}

// room returns how much it makes sense to ask for, of what the client wants.
func (s *share) room(want int) (n int, wait time.Duration) {
	n = want
	s.with(func(b *quota.Bucket, now time.Time) {
		n = int(min(float64(want), b.Room(now)))
		wait = b.Owing(now)
	})
	return n, wait
}

// user is who has sent the request, as quotas name users.
func (c *call) user() string { return c.principal().Name() }

// throttle has a request's connection not be read for a time, and returns what the
// answer says of it (KIP-219).
func (c *call) throttle(kind quota.Kind, wait time.Duration) (millis int32) {
	if wait > 0 {
		c.origin.Conn.Mute(wait)
		if c.h.opts.Throttled != nil {
			c.h.opts.Throttled(kind, wait)
		}
	}
	return int32(wait / time.Millisecond)
}

// mutations counts the partitions that a request creates and deletes against its
// client's quota (KIP-599). Nil if there is none.
type mutations struct {
	share  *share
	strict bool // the client knows the error
	wait   time.Duration
}

// mutations returns what counts the changes of a request, whose version says whether
// its client knows what it means that some are refused.
func (h *Handler) mutations(c *call, strict bool) *mutations {
	s := h.share(c, quota.Mutations)
	if s == nil {
		return nil
	}
	return &mutations{share: s, strict: strict}
}

// allow counts partitions that are about to be created or deleted, or refuses that.
// Of clients that do not know the error nothing is refused: they only wait for it.
func (m *mutations) allow(partitions int) error {
	if m == nil || partitions <= 0 {
		return nil
	}
	var wait time.Duration
	m.share.with(func(b *quota.Bucket, now time.Time) {
		if m.strict {
			wait = b.TakeUnlessOwing(float64(partitions), now)
		} else {
			wait = b.Take(float64(partitions), now)
		}
	})
	m.wait = max(m.wait, wait)
	if m.strict && wait > 0 {
		return metadata.Refuse(kerr.ThrottlingQuotaExceeded, "the quota of changes is exceeded; try again in %s", wait)
	}
	return nil
}

// allowNew is allow for topics that are about to be created. Those for which there is
// an error already, or that exist, do not count.
func (m *mutations) allowNew(image *metadata.Image, topics []metadata.NewTopic, errs []error) {
	if m == nil {
		return
	}
	for i := range topics {
		if errs[i] == nil && image.Topic(topics[i].Name) == nil {
			errs[i] = m.allow(newPartitions(image, topics[i].Partitions))
		}
	}
}

// newPartitions is how many partitions a topic gets that asks for so many.
func newPartitions(image *metadata.Image, asked int32) int {
	if asked == -1 {
		return int(image.Config.Int("num.partitions"))
	}
	return int(asked)
}

// partitionsOf is how many partitions a topic has.
func partitionsOf(image *metadata.Image, topic string) int {
	if t := image.Topic(topic); t != nil {
		return len(t.Partitions)
	}
	return 0
}

// settle has the client wait, if it has to, and tells it so.
func (m *mutations) settle(c *call, resp kmsg.SetThrottleResponse) {
	if m != nil {
		resp.SetThrottle(c.throttle(quota.Mutations, m.wait))
	}
}
