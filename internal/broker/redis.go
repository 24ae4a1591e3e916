package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/redis/rueidis"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/coordinator"
	"muster/internal/handler"
	"muster/internal/shown"
	"muster/internal/store"
	"muster/internal/store/redis"
	"muster/internal/store/redis/conn"
	leases "muster/internal/store/redis/lease"
)

// redisSide is what a broker has open of the Redis that its store is in.
type redisSide struct {
	client rueidis.Client
	native *shown.Groups // nil until the store is open
	stop   context.CancelFunc
}

// shown returns what shows groups in Redis, or nothing.
func (r *redisSide) shown() handler.Native {
	if r == nil {
		return nil
	}
	return r.native
}

// counter returns what counts records, or nothing.
func (r *redisSide) counter() handler.Counter {
	if r == nil {
		return nil
	}
	return r.native.Counter()
}

// checker returns the store if it can check its logs, or nothing.
func (b *Broker) checker() store.Checker {
	c, _ := b.store.(store.Checker)
	return c
}

// converter returns the store if it can convert its logs, or nothing.
func (b *Broker) converter() store.Converter {
	c, _ := b.store.(store.Converter)
	return c
}

// lengths returns the store if it counts records, or nothing.
func (b *Broker) lengths() store.Lengths {
	l, _ := b.store.(store.Lengths)
	return l
}

// quiet ends what runs in the background.
func (r *redisSide) quiet() {
	r.stop()
	if r.native != nil {
		r.native.Close()
	}
}

// openRedis connects to Redis, takes a node id, and opens the store.
func (b *Broker) openRedis(ctx context.Context) error {
	url := b.cfg.Get("muster.redis.url")
	if url == "" {
		return errors.New("muster.store=redis needs muster.redis.url, such as redis://127.0.0.1:6379")
	}
	if err := redis.CheckPrefix(b.cfg.Get("muster.redis.prefix")); err != nil {
		return err
	}
	if conn.IsPlainBeyondLoopback(url) {
		b.logger.Warn("Redis is on another machine and reached over plain text: records, and a password if there is one, can be read on the way; use rediss:// if it is not a private network")
	}
	changed := make(chan struct{}, 1)
	runs := &conn.Runs{Changed: func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}}
	client, err := conn.Connect(ctx, url, conn.Options{ClientName: "muster", Runs: runs})
	if err != nil {
		return err
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	b.redis = &redisSide{client: client, stop: stop}
	report, err := conn.Inspect(ctx, client)
	if err != nil {
		return err
	}
	b.logger.Info("connected to Redis", "server", report.String())
	for _, w := range report.Warnings {
		b.logger.Warn(w)
	}
	if err := conn.CheckRights(ctx, client, cmp.Or(b.cfg.Get("muster.redis.prefix"), redis.DefaultPrefix)); err != nil {
		return err
	}
	if err := b.takeNode(ctx); err != nil {
		return err
	}
	b.store = redis.New(client, redis.Options{Prefix: b.cfg.Get("muster.redis.prefix"), Logger: b.logger, Runs: runs})
	b.redis.native = shown.New(shown.Options{
		Client: client, Prefix: b.cfg.Get("muster.redis.prefix"), Logger: b.logger, Image: b.image,
		Describe: func(ctx context.Context, group string, req *kmsg.DescribeGroupsRequest) kmsg.Response {
			return b.groups.Do(ctx, group, coordinator.Client{}, req)
		},
	})
	b.running.Go(func() { b.redis.native.Run(background) })
	b.running.Go(func() { b.awaitRestarts(background, changed) })
	b.running.Go(func() {
		conn.Watch(background, client, watchRedis, func(up bool, err error, downFor time.Duration) { b.redisChanged(background, up, err, downFor) })
	})
	return nil
}

// watchRedis is how often it is looked whether Redis answers.
const watchRedis = time.Second

// redisChanged says once that Redis is away, and once that it is back. What follows from it
// meanwhile is not logged.
func (b *Broker) redisChanged(ctx context.Context, up bool, err error, downFor time.Duration) {
	if up {
		b.away.Store(nil)
		b.logger.Info("Redis is back", "away", downFor.Round(time.Millisecond), "lines_left_out", b.unsaid.Swap(0))
		b.verify(ctx)
		return
	}
	b.logger.Error("Redis cannot be reached; requests get errors that clients try again after", "error", err)
	b.away.Store(&redisAway{since: time.Now(), err: err})
}

// awaitRestarts looks at everything each time that Redis was started again, also if that took
// so little time that no one missed it.
func (b *Broker) awaitRestarts(ctx context.Context, changed <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			b.logger.Info("Redis was started again, or another server has taken its place")
			if !b.up.Load() {
				continue // There is nothing open yet that could have been lost.
			}
			b.verify(ctx)
			// Some connections are refused at first: see conn.Runs.
			for failed, _ := b.manager.Failed(); failed > 0 && ctx.Err() == nil && b.away.Load() == nil && len(changed) == 0; failed, _ = b.manager.Failed() {
				select {
				case <-ctx.Done():
				case <-time.After(watchRedis):
				}
				b.manager.Mend(ctx)
			}
		}
	}
}

// verify looks what is there after Redis was away, or is another one. It may have lost
// something. Appends would find out, readers would not.
func (b *Broker) verify(ctx context.Context) {
	if b.up.Load() {
		b.manager.Verify(ctx)
		for _, c := range b.coordinators {
			c.Reload()
		}
	}
}

// takeNode registers this broker under its node id, or under a free one if the
// settings name none. A broker that was killed is registered until its lease runs
// out; its successor waits for that.
func (b *Broker) takeNode(ctx context.Context) error {
	l := &lease{
		Leases: leases.New(b.redis.client, b.cfg.Get("muster.redis.prefix"), b.cfg.Duration("broker.session.timeout.ms")),
		ttl:    b.cfg.Duration("broker.session.timeout.ms"), value: []byte(b.whoami()),
	}
	b.lease = l
	if !b.cfg.IsSet("node.id") && !b.cfg.IsSet("broker.id") {
		id, err := l.AcquireFree(ctx, b.node, l.value)
		b.node, l.id = id, id
		return err
	}
	l.id = b.node
	for waited := false; ; waited = true {
		err := l.Acquire(ctx)
		var held *leases.HeldError
		if !errors.As(err, &held) {
			return err
		}
		if waited && held.For > l.ttl/2 {
			// It was renewed meanwhile.
			return fmt.Errorf("node.id %d is taken: %w", b.node, err)
		}
		b.logger.Info("node id is still registered; waiting for its lease to run out", "node", b.node, "by", string(held.Value), "left", held.For)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(held.For + 10*time.Millisecond):
		}
	}
}

// whoami says who holds a lease, for people.
func (b *Broker) whoami() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("%s, process %d, %s", host, os.Getpid(), b.Addr())
}

// lease is this broker's registration, as the cluster sees it.
type lease struct {
	*leases.Leases
	id    int32
	ttl   time.Duration
	value []byte
}

// TTL implements cluster.Lease.
func (l *lease) TTL() time.Duration { return l.ttl }

// Acquire implements cluster.Lease.
func (l *lease) Acquire(ctx context.Context) error { return l.Leases.Acquire(ctx, l.id, l.value) }

// Live implements cluster.Lease.
func (l *lease) Live(ctx context.Context, ids []int32) (map[int32]bool, error) {
	found, err := l.Leases.Live(ctx, ids)
	live := make(map[int32]bool, len(found))
	for id := range found {
		live[id] = true
	}
	return live, err
}
