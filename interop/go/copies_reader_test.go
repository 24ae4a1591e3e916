package interop

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// copyReader reads what is committed from the output all the while, through losses:
// what it is given while a transaction is open cannot be taken back.
type copyReader struct {
	client  *kgo.Client
	reading sync.WaitGroup

	mu   sync.Mutex
	got  []string
	last error // of fetching
}

func startCopyReader(r *copyRun) *copyReader {
	r.t.Helper()
	from := map[int32]kgo.Offset{}
	for p := range int32(copyOut) {
		from[p] = kgo.NewOffset().At(0)
	}
	c := &copyReader{client: connect(r.t, r.addrs[0], kgo.SeedBrokers(r.addrs...), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{r.out(): from}), kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.MetadataMinAge(50*time.Millisecond), kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }),
		kgo.RequestTimeoutOverhead(2*time.Second), kgo.FetchMaxWait(500*time.Millisecond))}
	c.reading.Go(func() { c.read(r.t.Context()) })
	return c
}

// read reads until the client is closed.
func (c *copyReader) read(ctx context.Context) {
	for {
		fetches := c.client.PollFetches(ctx)
		if fetches.IsClientClosed() || ctx.Err() != nil {
			return
		}
		c.mu.Lock()
		if err := fetches.Err(); err != nil {
			c.last = err
		}
		fetches.EachRecord(func(r *kgo.Record) { c.got = append(c.got, string(r.Value)) })
		c.mu.Unlock()
	}
}

// has says whether so many records were read.
func (c *copyReader) has(n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.got) < n {
		return fmt.Errorf("the reader has %d of %d records, last error: %w", len(c.got), n, c.last)
	}
	return nil
}

// finish ends the reading, and returns what was read.
func (c *copyReader) finish() []string {
	c.client.Close()
	c.reading.Wait()
	return c.got
}
