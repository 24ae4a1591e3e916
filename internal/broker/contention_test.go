package broker_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/broker"
	"muster/internal/redistest"
)

var contended = flag.Int("contended", 6000, "how many entries each Redis client adds in TestRedisClientsAndTransactionsInOneOrder")

// contest is a partition that Redis clients and transactional producers write to.
type contest struct {
	*testing.T
	server  *redistest.Server
	broker  *broker.Broker
	mu      sync.Mutex
	want    int             // how many records readers of committed records are to see
	aborted map[string]bool // values
}

const contestKey = "muster:orders:0"

// TestRedisClientsAndTransactionsInOneOrder has three Redis clients add entries as fast as they can to
// a partition that two transactional producers write to through a broker. A reader of committed records and one
// that uses XREAD see each record once, and in the same order.
func TestRedisClientsAndTransactionsInOneOrder(t *testing.T) {
	s := redistest.Single(t)
	c := &contest{T: t, server: s, broker: join(t, s), aborted: map[string]bool{}}
	eventually(t, "a topic", func(ctx context.Context) error {
		_, err := kadm.NewClient(client(t, c.broker)).CreateTopic(ctx, 1, 1, map[string]*string{"muster.redis.layout": kadm.StringPtr("indexed")}, "orders")
		return err
	})
	began := time.Now()
	var adding, writing, reading sync.WaitGroup
	added, done := make(chan struct{}), make(chan struct{})
	for i := range 3 {
		adding.Go(func() { c.add(i) })
	}
	for i := range 2 {
		writing.Go(func() { c.produce(i, added) })
	}
	var kafka, redis []string
	reading.Go(func() { kafka = c.consume(done) })
	reading.Go(func() { redis = c.xread(done) })
	adding.Wait()
	took := time.Since(began)
	close(added)
	writing.Wait()
	close(done)
	reading.Wait()
	committed := slices.DeleteFunc(slices.Clone(redis), func(v string) bool { return c.aborted[v] })
	if len(kafka) != c.want || len(redis) != c.want+len(c.aborted) || !slices.Equal(kafka, committed) {
		i := 0
		for i < min(len(kafka), len(committed)) && kafka[i] == committed[i] {
			i++
		}
		t.Errorf("read_committed sees %d records, and XREAD %d, of %d and %d that were aborted; they differ from %d on: %q, %q",
			len(kafka), len(redis), c.want, len(c.aborted), i, kafka[i:min(i+3, len(kafka))], committed[i:min(i+3, len(committed))])
	}
	slices.Sort(redis)
	if n := len(slices.Compact(redis)); n != c.want+len(c.aborted) {
		t.Errorf("%d values are different", n)
	}
	t.Logf("%d entries of Redis clients in %v, %d records of transactions beside them, %d of which were aborted",
		3**contended, took, c.want+len(c.aborted)-3**contended, len(c.aborted))
}

// add adds entries as a Redis client, a hundred at a time.
func (c *contest) add(who int) {
	client := c.server.Client(c)
	for from := 0; from < *contended; from += 100 {
		var cmds []rueidis.Completed
		for n := from; n < min(from+100, *contended); n++ {
			cmds = append(cmds, client.B().Xadd().Key(contestKey).Id("*").FieldValue().FieldValue("value", fmt.Sprint("r", who, " ", n)).Build())
		}
		for _, r := range client.DoMulti(c.Context(), cmds...) {
			if err := r.Error(); err != nil {
				c.Error(err)
				return
			}
		}
		c.mu.Lock()
		c.want += len(cmds)
		c.mu.Unlock()
	}
}

// produce writes transactions for as long as Redis clients add entries, and aborts some.
func (c *contest) produce(who int, added chan struct{}) {
	p, err := kgo.NewClient(brisk([]*broker.Broker{c.broker}, []kgo.Opt{kgo.TransactionalID(fmt.Sprint("contest", who)), kgo.DefaultProduceTopic("orders")})...)
	if err != nil {
		c.Error(err)
		return
	}
	defer p.Close()
	for n, ended := 0, false; !ended || n < 8; n++ {
		select {
		case <-added:
			ended = true
		default:
		}
		var records []*kgo.Record
		for i := range 1 + 7*n%40 {
			records = append(records, kgo.StringRecord(fmt.Sprint("t", who, " ", n, " ", i)))
		}
		err := p.BeginTransaction()
		if err == nil {
			err = p.ProduceSync(c.Context(), records...).FirstErr()
		}
		commit := n%4 > 0
		if err == nil {
			err = p.EndTransaction(c.Context(), kgo.TransactionEndTry(commit))
		}
		if err != nil {
			c.Errorf("transaction %d of producer %d: %v", n, who, err)
			return
		}
		c.mu.Lock()
		for _, r := range records {
			if commit {
				c.want++
			} else {
				c.aborted[string(r.Value)] = true
			}
		}
		c.mu.Unlock()
	}
}

// finished says whether all is written, and a reader has seen so much.
func (c *contest) finished(done chan struct{}, seen int, all bool) bool {
	select {
	case <-done:
	default:
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	want := c.want
	if all {
		want += len(c.aborted)
	}
	return seen >= want
}

// consume reads committed records from the start.
func (c *contest) consume(done chan struct{}) (values []string) {
	r, err := kgo.NewClient(brisk([]*broker.Broker{c.broker}, []kgo.Opt{kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxWait(200 * time.Millisecond),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"orders": {0: kgo.NewOffset().AtStart()}})})...)
	if err != nil {
		c.Error(err)
		return nil
	}
	defer r.Close()
	next := int64(0)
	for limit := time.Now().Add(2 * time.Minute); !c.finished(done, len(values), false); {
		ctx, cancel := context.WithTimeout(c.Context(), time.Second)
		fetches := r.PollFetches(ctx)
		cancel()
		fetches.EachError(func(_ string, _ int32, err error) {
			if !errors.Is(err, context.DeadlineExceeded) {
				c.Error(err)
			}
		})
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Offset < next {
				c.Errorf("offset %d after %d", r.Offset, next-1)
			}
			next = r.Offset + 1
			values = append(values, string(r.Value))
		})
		if time.Now().After(limit) {
			c.Errorf("%d records were read after two minutes", len(values))
			return values
		}
	}
	return values
}

// xread reads as a Redis client does.
func (c *contest) xread(done chan struct{}) (values []string) {
	client := c.server.Client(c)
	last := "0"
	for !c.finished(done, len(values), true) {
		read, err := client.Do(c.Context(), client.B().Xread().Count(1000).Block(200).Streams().Key(contestKey).Id(last).Build()).AsXRead()
		if rueidis.IsRedisNil(err) {
			select {
			case <-done: // Nothing follows.
				return values
			default:
				continue
			}
		}
		if err != nil {
			c.Error(err)
			return values
		}
		for _, e := range read[contestKey] {
			last = e.ID
			values = append(values, strings.Clone(e.FieldValues["value"]))
		}
	}
	return values
}
