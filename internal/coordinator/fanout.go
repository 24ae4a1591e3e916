package coordinator

import (
	"context"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Each splits a request about several groups by shard, has the parts handled at
// the same time, and calls merge with the answers one after the other. part
// makes the request about some of the groups.
func (c *Coordinator) Each(ctx context.Context, from Client, groups []string, part func(groups []string) kmsg.Request, merge func(kmsg.Response)) {
	shards := c.shards.Load()
	if shards == nil {
		if len(groups) > 0 {
			merge(c.opts.Core.Fail(part(groups), kerr.CoordinatorNotAvailable))
		}
		return
	}
	byShard := map[int32][]string{}
	for _, g := range groups {
		i := PartitionFor(g, int32(len(*shards)))
		byShard[i] = append(byShard[i], g)
	}
	c.fan(len(byShard), func(do func(func() kmsg.Response)) {
		for i, some := range byShard {
			do(func() kmsg.Response { return c.do(ctx, (*shards)[i], from, part(some)) })
		}
	}, merge)
}

// All has a request handled by every shard of this broker. A coordinator without shards has no
// groups, and calls merge with nothing.
func (c *Coordinator) All(ctx context.Context, from Client, part func() kmsg.Request, merge func(kmsg.Response)) {
	shards := c.shards.Load()
	if shards == nil {
		return
	}
	led := slices.DeleteFunc(slices.Clone(*shards), func(s *shard) bool { return s == nil })
	c.fan(len(led), func(do func(func() kmsg.Response)) {
		for _, s := range led {
			do(func() kmsg.Response { return c.do(ctx, s, from, part()) })
		}
	}, merge)
}

// fan runs calls at the same time, if there are several, and merges in turn.
func (c *Coordinator) fan(n int, calls func(do func(func() kmsg.Response)), merge func(kmsg.Response)) {
	if n == 1 {
		calls(func(call func() kmsg.Response) { merge(call()) })
		return
	}
	var mu sync.Mutex
	var running sync.WaitGroup
	calls(func(call func() kmsg.Response) {
		running.Go(func() {
			resp := call()
			mu.Lock()
			defer mu.Unlock()
			merge(resp)
		})
	})
	running.Wait()
}
