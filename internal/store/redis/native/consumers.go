package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"muster/internal/store"
	"muster/internal/store/redis"
	"muster/internal/store/redis/conn"
)

// A member that holds a partition is shown as a consumer of its group on that
// partition's stream, which XINFO CONSUMERS tells. The hash {<stream>}:c says, for
// each group, which consumer that is: there is one at a time. A consumer with
// pending entries is never removed, for it is one that a Redis application uses.

// consumerScript takes the stream and the hash of consumers, and: a group, and
// the consumer it is to have there or nothing. It returns 0 if there is no such
// group yet.
const consumerScriptText = `
local key, group, name = KEYS[1], ARGV[1], ARGV[2]
if redis.call('EXISTS', key) == 0 then return 1 end
local old = redis.call('HGET', KEYS[2], group)
if old and old ~= name then
  local pending = redis.pcall('XPENDING', key, group, '-', '+', 1, old)
  if not pending.err and #pending == 0 then redis.call('XGROUP', 'DELCONSUMER', key, group, old) end
  redis.call('HDEL', KEYS[2], group)
end
if name == '' then return 1 end
local made = redis.pcall('XGROUP', 'CREATECONSUMER', key, group, name)
if type(made) == 'table' then
  if string.sub(made.err, 1, 7) == 'NOGROUP' then return 0 end
  return made
end
redis.call('HSET', KEYS[2], group, name)
return 1`

var consumerScript = newScript(consumerScriptText)

// holder is who holds a partition of a group, or no one.
type holder struct {
	tp          store.TopicPartition
	group, name string
}

// showHolders shows who holds partitions. It returns, for each, whether there is a
// group that can show it.
func (n *Groups) showHolders(ctx context.Context, list []holder) (shown []bool, err error) {
	calls := make([]scriptCall, len(list))
	for i, h := range list {
		k := redis.KeysOf(n.prefix, h.tp)
		calls[i] = scriptCall{keys: []string{k.Stream, k.Consumers}, args: []string{h.group, h.name}}
	}
	shown = make([]bool, len(list))
	var errs []error
	for i, r := range consumerScript.each(ctx, n.client, calls) {
		done, err := r.AsInt64()
		if shown[i] = done == 1; err != nil {
			errs = append(errs, conn.Attempt(fmt.Sprintf("showing who holds %s-%d of redis group %s", list[i].tp.Topic, list[i].tp.Partition, list[i].group), err))
		}
	}
	return shown, errors.Join(errs...)
}

// How much Consumers does at most: how many groups may wait, how many partitions
// of groups it remembers to have shown, and in how many rounds it tries to show a
// group that does not exist yet in Redis, because its members have not fetched.
const (
	consumersLimit  = 100_000
	consumersRounds = 30
)

// ConsumersOptions are what Consumers can be told.
type ConsumersOptions struct {
	Every  time.Duration // how often a group is looked at, at most, 1 s if zero
	Logger *slog.Logger
	// Holders says which consumer holds which partition of a group, and false if
	// this broker does not know.
	Holders func(ctx context.Context, group string) (map[store.TopicPartition]string, bool)
}

// Consumers shows who holds which partitions, off the request path. If too much
// happens at once, some of it is left out, until the group changes again.
type Consumers struct {
	groups *Groups
	opts   ConsumersOptions

	mu      sync.Mutex
	waiting map[string]int // groups that changed, and how many rounds they have left

	// What was shown, which only the goroutine that runs rounds uses.
	shown map[string][]store.TopicPartition
	count int
}

// NewConsumers returns what Run keeps as it is told.
func NewConsumers(groups *Groups, opts ConsumersOptions) *Consumers {
	return &Consumers{groups: groups, opts: opts, waiting: make(map[string]int), shown: make(map[string][]store.TopicPartition)}
}

// Changed asks for a look, soon, at who holds which partitions of a group. It never
// waits.
func (c *Consumers) Changed(group string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.waiting[group]; ok || len(c.waiting) < consumersLimit {
		c.waiting[group] = consumersRounds
	}
}

// Run shows what changed until ctx ends.
func (c *Consumers) Run(ctx context.Context) {
	tick := time.NewTicker(cmp.Or(c.opts.Every, time.Second))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c.round(ctx)
		}
	}
}

// round looks at all groups that changed.
func (c *Consumers) round(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, moverTimeout)
	defer cancel()
	c.mu.Lock()
	waiting := c.waiting
	c.waiting = make(map[string]int)
	c.mu.Unlock()
	var list []holder
	for group := range waiting {
		if holders, ok := c.opts.Holders(ctx, group); ok {
			list = append(list, c.compare(group, holders)...)
		}
	}
	if len(list) == 0 {
		return
	}
	shown, err := c.groups.showHolders(ctx, list)
	if err != nil && !errors.Is(err, store.ErrUnavailable) && ctx.Err() == nil {
		c.opts.Logger.Debug("members cannot be shown as redis consumers", "error", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, h := range list {
		left := waiting[h.group] - 1
		if _, newer := c.waiting[h.group]; !shown[i] && !newer && left > 0 {
			c.waiting[h.group] = left
		}
	}
}

// compare returns what is to be shown of a group: who holds its partitions, and
// which of them have lost their holder.
func (c *Consumers) compare(group string, holders map[store.TopicPartition]string) []holder {
	var list []holder
	for _, tp := range c.shown[group] {
		if _, held := holders[tp]; !held {
			list = append(list, holder{tp, group, ""})
		}
	}
	c.count -= len(c.shown[group])
	delete(c.shown, group)
	var now []store.TopicPartition
	for tp, name := range holders {
		list = append(list, holder{tp, group, name})
		now = append(now, tp)
	}
	if len(now) > 0 && c.count+len(now) <= consumersLimit {
		c.shown[group] = now
		c.count += len(now)
	}
	return list
}
