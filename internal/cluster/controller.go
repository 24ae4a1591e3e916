// Package cluster keeps the cluster's metadata: it owns the log
// __cluster_metadata, replays it into an image, and turns every change into
// records first and into the next image after they are durable.
//
// Changes are made one at a time. Readers take the current image with Image and
// never wait. With a store on local disk there is one broker, which leads every
// partition; its leader epoch rises each time it starts after a crash, so that
// clients notice a log that lost records they had read.
//
// A record's key says what it is about (cluster, config, topic/<name>,
// producer-ids), its value is JSON with the whole state of that thing, and a
// null value removes it. Keys make the log compactable.
package cluster

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

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
	// Crashed says that the broker's last stop was not clean.
	Crashed bool
	Now     func() time.Time
	Logger  *slog.Logger
	// OnChange is called after every change with the images before and after
	// and the names of the topics that changed, while no other change is made.
	// Its error goes to who made the change.
	OnChange func(ctx context.Context, before, after *metadata.Image, topics []string) error
}

// Controller changes the cluster's metadata.
type Controller struct {
	opts  Options
	image atomic.Pointer[metadata.Image]

	mu          sync.Mutex
	log         store.Log
	leaderEpoch int32
	nextID      int64 // first producer id never handed out
	lastID      int64 // producer ids from nextID to here are reserved in the log
}

// producerIDBlock is how many producer ids one record reserves.
const producerIDBlock = 1000

// Open replays the metadata and returns the controller. OnChange is called
// once, from the empty image to the replayed one.
func Open(ctx context.Context, opts Options) (*Controller, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	c := &Controller{opts: opts}
	if err := c.openLog(ctx); err != nil {
		return nil, err
	}
	c.compact(ctx)
	empty := metadata.NewImage("", opts.Self, opts.Defaults)
	state, err := replay(ctx, c.log, empty)
	if err != nil {
		return nil, fmt.Errorf("load cluster metadata: %w", err)
	}
	c.nextID, c.lastID, c.leaderEpoch = state.nextProducerID, state.nextProducerID, state.leaderEpoch
	edit := state.edit
	if err := c.begin(ctx, edit, state.clusterID); err != nil {
		return nil, err
	}
	image := edit.Image()
	if opts.OnChange != nil {
		if err := opts.OnChange(ctx, empty, image, edit.Changed()); err != nil {
			return nil, err
		}
	}
	c.image.Store(image)
	return c, nil
}

// compactAbove is the size of the metadata log above which a start compacts it.
const compactAbove = 4 << 20

// openLog opens the metadata log. A broker alone needs no epochs for it: the
// lock of the data folder keeps others out.
func (c *Controller) openLog(ctx context.Context) (err error) {
	tp := store.TopicPartition{Topic: metadata.ClusterMetadataTopic}
	c.log, err = c.opts.Store.Open(ctx, tp, 0, store.LogConfig{SegmentBytes: 1 << 20})
	return err
}

func (c *Controller) compact(ctx context.Context) {
	if c.log.Size() < compactAbove {
		return
	}
	_, end := c.log.Bounds()
	err := c.log.Compact(ctx, store.Compaction{Now: c.opts.Now(), NextOffset: end, MinDirtyRatio: 0.5})
	if err != nil {
		c.opts.Logger.Warn("cluster metadata could not be compacted", "error", err)
	}
}

// begin writes what a start changes: the cluster id the first time, the leader
// epoch after a crash.
func (c *Controller) begin(ctx context.Context, edit *metadata.Edit, clusterID string) error {
	first := clusterID == ""
	if first {
		var id [16]byte
		_, _ = rand.Read(id[:]) // Never fails, by its documentation.
		clusterID = base64.RawURLEncoding.EncodeToString(id[:])
	} else if c.opts.Crashed {
		c.leaderEpoch++
	}
	edit.SetClusterID(clusterID)
	edit.SetLeaderEpoch(c.leaderEpoch)
	if !first && !c.opts.Crashed {
		return nil
	}
	return c.write(ctx, clusterRecord(clusterID, c.leaderEpoch))
}

// Image returns the current image.
func (c *Controller) Image() *metadata.Image { return c.image.Load() }

// Close ends the controller. The log stays with its store.
func (c *Controller) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.log.Close()
}

// change makes records durable and then publishes the image that edit makes.
// The lock is held.
func (c *Controller) change(ctx context.Context, edit *metadata.Edit, recs ...record.Record) error {
	if err := c.write(ctx, recs...); err != nil {
		return err
	}
	before, after := c.image.Load(), edit.Image()
	c.image.Store(after)
	if c.opts.OnChange != nil {
		return c.opts.OnChange(ctx, before, after, edit.Changed())
	}
	return nil
}

// write appends records as one batch and waits until they are durable.
func (c *Controller) write(ctx context.Context, recs ...record.Record) error {
	now := c.opts.Now().UnixMilli()
	for i := range recs {
		recs[i].OffsetDelta, recs[i].Timestamp = int32(i), now
	}
	b, err := record.Build(record.PlainTemplate(), recs)
	if err != nil {
		return err
	}
	_, err = c.log.Append(ctx, b)
	if errors.Is(err, store.ErrFailed) {
		// An earlier failure cut off records that no image has seen.
		if err = c.openLog(ctx); err == nil {
			_, err = c.log.Append(ctx, b)
		}
	}
	if err != nil {
		return fmt.Errorf("write cluster metadata: %w", err)
	}
	done := make(chan error, 1)
	c.log.Flush(func(err error) { done <- err })
	if err := <-done; err != nil {
		return fmt.Errorf("write cluster metadata: %w", err)
	}
	return nil
}

// NextProducerID returns a producer id that was never returned before, also
// not before a crash.
func (c *Controller) NextProducerID(ctx context.Context) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nextID == c.lastID {
		if err := c.write(ctx, producerIDsRecord(c.lastID+producerIDBlock)); err != nil {
			return 0, err
		}
		c.lastID += producerIDBlock
	}
	id := c.nextID
	c.nextID++
	return id, nil
}
