package interop

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
)

// copierEnv holds the copierSpec of a process that is a copier.
const copierEnv = "INTEROP_COPIER"

// copierSpec says what a copier is to do. It is a process of its own, so that
// kill -9 of it is one.
type copierSpec struct {
	Client  string // franz-go or librdkafka
	TV1     bool   // Transactions as clients before Kafka 4.0 have them.
	Addrs   []string
	Group   string
	ID      string // transactional id
	In, Out string
	Seed    uint64
}

const (
	copierPoll       = 25 // records of a transaction at most
	copierAborts     = 8  // one transaction in so many is aborted on purpose
	copierSession    = 3 * time.Second
	copierTimeout    = 5 * time.Second // of a transaction
	copierHeartbeats = 300 * time.Millisecond
	copierPatience   = 30 * time.Second // for the end of a transaction
)

// copyClients copy until the context ends, and then leave the group. They return
// when the client is of no use any more; a new process goes on then.
var copyClients = map[string]func(context.Context, copierSpec, *rand.Rand) error{
	"franz-go":   franzCopier,
	"librdkafka": librdkafkaCopier,
}

// A copier is not a test: it must not come as far as TestMain.
func init() {
	if text := os.Getenv(copierEnv); text != "" {
		os.Exit(runCopier(text))
	}
}

func runCopier(text string) int {
	var spec copierSpec
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	go func() {
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			leave()
		}
		if ctx.Err() == nil {
			os.Exit(1) // The test is gone.
		}
	}()
	if err := copyClients[spec.Client](ctx, spec, rand.New(rand.NewPCG(spec.Seed, uint64(os.Getpid())))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// ended tells the test of the end of a transaction.
func ended(committed bool, records int) {
	what := "abort"
	if committed {
		what = "commit"
	}
	fmt.Println(what, records)
}

// A record's value is its key and its number, and its key is its number among the
// keys. Who produces puts it where it belongs, so that all clients agree.
func copyPartition(key []byte, partitions int32) int32 {
	n, _ := strconv.Atoi(strings.TrimPrefix(string(key), "k"))
	return int32(n) % partitions
}

func franzCopier(ctx context.Context, spec copierSpec, rng *rand.Rand) error {
	opts := []kgo.Opt{
		kgo.SeedBrokers(spec.Addrs...), kgo.TransactionalID(spec.ID), kgo.TransactionTimeout(copierTimeout),
		kgo.ConsumerGroup(spec.Group), kgo.ConsumeTopics(spec.In), kgo.Balancers(kgo.RangeBalancer()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.SessionTimeout(copierSession), kgo.HeartbeatInterval(copierHeartbeats), kgo.FetchMaxWait(200 * time.Millisecond),
		kgo.DefaultProduceTopic(spec.Out), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MetadataMinAge(50 * time.Millisecond), kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }),
		kgo.RequestTimeoutOverhead(2 * time.Second),
	}
	if spec.TV1 {
		opts = append(opts, kgo.MaxVersions(kversion.V3_8_0()))
	}
	s, err := kgo.NewGroupTransactSession(opts...)
	if err != nil {
		return err
	}
	defer s.Close()
	for ctx.Err() == nil {
		polling, cancel := context.WithTimeout(ctx, time.Second)
		fetches := s.PollRecords(polling, copierPoll)
		cancel()
		if err := fetches.Err(); err != nil && ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded) {
			// It joins again, and tries on.
			fmt.Fprintln(os.Stderr, "poll:", err)
		}
		if fetches.NumRecords() == 0 {
			continue
		}
		if err := franzCopy(s, fetches, rng.IntN(copierAborts) > 0); err != nil {
			return err
		}
	}
	return nil
}

// franzCopy copies what was polled in a transaction.
func franzCopy(s *kgo.GroupTransactSession, fetches kgo.Fetches, commit bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), copierPatience)
	defer cancel()
	if err := s.Begin(); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	var mu sync.Mutex
	var failed error
	fetches.EachRecord(func(r *kgo.Record) {
		out := &kgo.Record{Key: r.Key, Value: r.Value, Partition: copyPartition(r.Key, copyOut)}
		s.Produce(ctx, out, func(_ *kgo.Record, err error) {
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, err)
		})
	})
	if err := s.Client().Flush(ctx); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	mu.Lock()
	if failed != nil {
		fmt.Fprintln(os.Stderr, "produce:", failed)
	}
	commit = commit && failed == nil
	mu.Unlock()
	committed, err := s.End(ctx, kgo.TransactionEndTry(commit))
	if err != nil {
		return fmt.Errorf("end: %w", err)
	}
	ended(committed, fetches.NumRecords())
	return nil
}
