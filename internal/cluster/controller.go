// Package cluster keeps the cluster's metadata: it owns the log
// __cluster_metadata, replays it into an image, and turns every change into
// records first and into the next image after they are stored.
//
// Readers take the current image with Image and never wait. Changes are made one
// at a time. A broker with a store of its own leads every partition;
// its leader epoch rises each time it starts after a crash, so that clients
// notice a log that lost records they had read.
//
// In a store that several brokers share, each of them follows the same log, and
// may append to it as long as it has seen everything before: a broker that was
// overtaken catches up and tries again. A broker holds a lease with a time limit. A
// broker that sees another's lease run out appends that fact, together with the new
// leaders of its partitions, so that all brokers go on from the same records.
//
// Such a store may come back with an older state. Each append and each read
// proves the last batch that was seen, and a broker whose proof fails reads the
// log again from its start. It remembers what the log has lost: leader epochs
// go on above those that it knew, and producer ids begin at the current time.
//
// A record's key says what it is about (cluster, config, topic/<name>,
// broker/<id>, group/<name>, user/<name>, acl/<id>, quota/<entity>, deleting/<name>,
// producer-ids, secret), its value is JSON with the whole state of that thing, and
// a null value removes it. Keys make the log compactable.
package cluster

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/record"
	"muster/internal/store"
)

// Options of a controller.
type Options struct {
	Store    store.Store
	Self     metadata.Broker
	Defaults *config.Broker
	// Crashed says that the last stop of a broker alone was not clean.
	Crashed bool
	// Lease is this broker's, in a store that several share.
	Lease  Lease
	Now    func() time.Time
	Logger *slog.Logger
	// OnChange is called after every change with the images before and after
	// and the names of the topics that changed, while no other change is made.
	// Its error is returned to the caller that made the change.
	OnChange func(ctx context.Context, before, after *metadata.Image, topics []string) error
	// Opened is called before OnChange is for the first time.
	Opened func(*Controller)
}

// Controller changes the cluster's metadata.
type Controller struct {
	opts  Options
	image atomic.Pointer[metadata.Image]

	mu     sync.Mutex
	state  state
	nextID int64 // first producer id that this broker has not handed out
	lastID int64 // producer ids from nextID to here are this broker's

	log store.Log // of a broker alone

	// Of a store that several brokers share.
	shared store.SharedLog
	seen   store.Seen // everything before it has been taken in
	begun  bool       // OnChange hears of changes
	// lastClusterID is the cluster id before the store lost it.
	lastClusterID string
	doubt         atomic.Pointer[doubt]
	until         atomic.Int64 // until when the lease is certainly good, by clock
	epoch         time.Time    // where clock begins
	steady        atomic.Int64 // since when the lease has been renewed without fail, by clock; 0 if it is not
	lapsed        bool         // the lease had run out, and what others did meanwhile is not known; only renew uses it
	stop          context.CancelFunc
	ended         sync.WaitGroup
}

// Open replays the metadata and returns the controller. OnChange is called
// once, from the empty image to the replayed one.
func Open(ctx context.Context, opts Options) (*Controller, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if err := metadata.CheckPolicy(opts.Defaults); err != nil {
		return nil, err
	}
	if opts.Defaults.IsSet(metadata.DrainedSetting) {
		return nil, fmt.Errorf("%s cannot be set at start; use muster brokers drain", metadata.DrainedSetting)
	}
	c := &Controller{opts: opts, stop: func() {}, epoch: time.Now()}
	c.state = newState(opts.Self.ID)
	open := c.openAlone
	if opts.Lease != nil {
		open = c.openShared
	}
	if err := open(ctx); err != nil {
		return nil, fmt.Errorf("load cluster metadata: %w", err)
	}
	return c, nil
}

// begin publishes the first image.
func (c *Controller) begin(ctx context.Context, empty, image *metadata.Image) error {
	c.image.Store(image)
	c.begun = true
	if c.opts.Opened != nil {
		c.opts.Opened(c)
	}
	if c.opts.OnChange == nil {
		return nil
	}
	var names []string
	for _, t := range image.Topics() {
		names = append(names, t.Name)
	}
	return c.opts.OnChange(ctx, empty, image, names)
}

// Image returns the current image.
func (c *Controller) Image() *metadata.Image { return c.image.Load() }

// LogEndOffset returns where the next record of the metadata goes, as far as this broker
// knows.
func (c *Controller) LogEndOffset() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shared != nil {
		return c.seen.Next
	}
	_, end := c.log.Bounds()
	return end
}

// Close ends the controller. The log stays with its store.
func (c *Controller) Close() error {
	c.stop()
	c.ended.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shared != nil {
		return c.shared.Close()
	}
	return c.log.Close()
}

// attempt makes a change under the lock, and again if another broker changed the
// metadata first, or if the store has lost some of it.
func (c *Controller) attempt(ctx context.Context, change func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for tries := range endless {
		err := change()
		switch {
		case errors.Is(err, store.ErrMoved):
			err = c.catchUp(ctx)
		case isLoss(err):
			err = c.reset(ctx, err)
		default:
			return err
		}
		if err != nil {
			return err
		}
		if tries >= atOnce {
			pause(ctx, retryChange)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

const (
	// atOnce is how often a change is tried again without a pause: others make
	// theirs meanwhile, but not for ever.
	atOnce      = 5
	retryChange = 20 * time.Millisecond
	endless     = math.MaxInt
)

// durably makes a change that someone relies upon: if min.insync.replicas asks
// for it, it is answered when replicas have it.
func (c *Controller) durably(ctx context.Context, change func() error) error {
	if err := c.attempt(ctx, change); err != nil || c.shared == nil {
		return err
	}
	c.mu.Lock()
	upTo := c.seen
	c.mu.Unlock()
	err := c.shared.Replicate(ctx, upTo, int(c.image.Load().Config.Int("min.insync.replicas")))
	if errors.Is(err, store.ErrNotReplicated) || isLoss(err) {
		return metadata.Refuse(kerr.RequestTimedOut, "the change is stored, but may be lost with its server: %s", err)
	}
	return err
}

// change stores records and then publishes the image that edit makes. The lock
// is held.
func (c *Controller) change(ctx context.Context, edit *metadata.Edit, recs ...record.Record) error {
	if err := c.write(ctx, recs...); err != nil {
		return err
	}
	return c.publish(ctx, edit)
}

// publish makes the image current that edit makes.
func (c *Controller) publish(ctx context.Context, edit *metadata.Edit) error {
	return c.announce(ctx, edit.Image(), edit.Changed())
}

// announce makes an image current in which some topics changed.
func (c *Controller) announce(ctx context.Context, after *metadata.Image, topics []string) error {
	before := c.image.Swap(after)
	if !c.begun || c.opts.OnChange == nil {
		return nil
	}
	return c.opts.OnChange(ctx, before, after, topics)
}

// write appends records as one batch and waits until they are stored.
func (c *Controller) write(ctx context.Context, recs ...record.Record) error {
	now := c.opts.Now().UnixMilli()
	for i := range recs {
		recs[i].OffsetDelta, recs[i].Timestamp = int32(i), now
	}
	b, err := record.Build(record.PlainTemplate(), recs)
	if err != nil {
		return err
	}
	if c.shared != nil {
		err = c.shared.AppendAt(ctx, c.seen, b)
	} else {
		err = c.writeAlone(ctx, b)
	}
	if err != nil {
		return fmt.Errorf("write cluster metadata: %w", err)
	}
	c.seen = store.Seen{Next: c.seen.Next + int64(len(recs)), CRC: b.CRC()}
	for i := range recs {
		if err := c.state.note(&recs[i]); err != nil {
			return fmt.Errorf("a metadata record of our own: %w", err)
		}
	}
	return nil
}

func newClusterID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // Never fails, by its documentation.
	return base64.RawURLEncoding.EncodeToString(id[:])
}
