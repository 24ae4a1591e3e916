package interop

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// await waits until a check passes, and returns its last error if it does not in
// time.
func (r *copyRun) await(deadline time.Time, what string, check func(context.Context) error) error {
	return awaitCopies(r.t.Context(), deadline, what, check)
}

func awaitCopies(ctx context.Context, deadline time.Time, what string, check func(context.Context) error) error {
	for {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		err := check(ctx)
		cancel()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s after the last loss, still waiting for %s: %w", copyPatience, what, err)
		}
		<-time.After(50 * time.Millisecond)
	}
}

// fresh runs a check with a client that knows nothing yet of brokers that were lost.
func fresh(addrs []string, check func(adm *kadm.Client) error) error {
	adm, err := kadm.NewOptClient(kgo.SeedBrokers(addrs...), kgo.MetadataMinAge(50*time.Millisecond), kgo.RequestTimeoutOverhead(2*time.Second))
	if err != nil {
		return err
	}
	defer adm.Close()
	return check(adm)
}

// allCopied says whether the group has committed all of the input, as members are
// told who insist on stable offsets (KIP-447): with no transaction pending.
func (r *copyRun) allCopied(ctx context.Context) error {
	return fresh(r.addrs, func(adm *kadm.Client) error {
		ends, err := adm.ListEndOffsets(ctx, r.in())
		if err = errors.Join(err, ends.Error()); err != nil {
			return err
		}
		offsets, err := adm.FetchOffsets(kadm.RequireStable(ctx), r.name)
		if err = errors.Join(err, offsets.Error()); err != nil {
			return err
		}
		for p := range int32(copyIn) {
			end, _ := ends.Lookup(r.in(), p)
			if o, ok := offsets.Lookup(r.in(), p); !ok || o.At != end.Offset {
				return fmt.Errorf("partition %d: %d of %d is committed (%s)", p, o.At, end.Offset, r.what())
			}
		}
		return nil
	})
}

// allDecided says whether the last stable offset is the high watermark in the
// topics of the run, and its group's offsets are stable.
func (r *copyRun) allDecided(ctx context.Context) error {
	if err := r.allCopied(ctx); err != nil {
		return err
	}
	return fresh(r.addrs, func(adm *kadm.Client) error { return decided(ctx, adm, r.in(), r.out()) })
}

func decided(ctx context.Context, adm *kadm.Client, topics ...string) error {
	ends, err := adm.ListEndOffsets(ctx, topics...)
	if err = errors.Join(err, ends.Error()); err != nil {
		return err
	}
	stable, err := adm.ListCommittedOffsets(ctx, topics...)
	if err = errors.Join(err, stable.Error()); err != nil {
		return err
	}
	for _, topic := range topics {
		if len(ends[topic]) == 0 {
			return fmt.Errorf("%s is not there", topic)
		}
		for p, end := range ends[topic] {
			if s, _ := stable.Lookup(topic, p); s.Offset != end.Offset {
				err = errors.Join(err, fmt.Errorf("%s-%d is stable up to %d and ends at %d", topic, p, s.Offset, end.Offset))
			}
		}
	}
	return err
}

// noneOpen waits until no transaction goes on, or waits for its end: neither
// at its coordinator nor in the groups' topic.
func noneOpen(ctx context.Context, addrs []string, deadline time.Time) error {
	return awaitCopies(ctx, deadline, "all transactions to be over", func(ctx context.Context) error {
		return fresh(addrs, func(adm *kadm.Client) error {
			open, err := adm.ListTransactions(ctx, nil, []string{"Ongoing", "PrepareCommit", "PrepareAbort"})
			if err != nil {
				return err
			}
			if len(open) > 0 {
				return fmt.Errorf("%v", open.Sorted())
			}
			return decided(ctx, adm, "__consumer_offsets")
		})
	})
}

// wanted is what the output should hold, sorted.
func (r *copyRun) wanted() (want []string) {
	for k, n := range r.written {
		for i := range n {
			want = append(want, fmt.Sprintf("k%02d/%06d", k, i))
		}
	}
	return want
}

// compare says what is wrong with what the reader was given all the while, and with
// what is committed in both topics.
func (r *copyRun) compare() error {
	err := r.compareTo("what was read meanwhile", r.reader.finish())
	for _, topic := range []string{r.in(), r.out()} {
		var got []string
		failed := awaitCopies(r.t.Context(), time.Now().Add(copyPatience), "the records of "+topic, func(ctx context.Context) (err error) {
			got, err = readValues(ctx, strings.Join(r.addrs, ","), topic, kgo.ReadCommitted())
			return err
		})
		if failed == nil {
			failed = r.compareTo(topic, got)
		}
		err = errors.Join(err, failed)
	}
	return err
}

func (r *copyRun) compareTo(what string, got []string) error {
	want := r.wanted()
	// Those of a key are in one partition, so that their order is that of reading.
	slices.SortStableFunc(got, func(a, b string) int { return strings.Compare(keyOf(a), keyOf(b)) })
	if slices.Equal(got, want) {
		return nil
	}
	sorted := slices.Sorted(slices.Values(got))
	if slices.Equal(sorted, want) {
		return fmt.Errorf("%s: every record is there once, but %s", what, disorder(got))
	}
	return fmt.Errorf("%s: %s", what, difference(want, sorted))
}

func keyOf(value string) string {
	key, _, _ := strings.Cut(value, "/")
	return key
}

// disorder names the places where a key's records are not in order.
func disorder(got []string) string {
	places := map[string]string{}
	for i := 1; i < len(got); i++ {
		if keyOf(got[i-1]) == keyOf(got[i]) && got[i] < got[i-1] {
			places[keyOf(got[i])] = fmt.Sprintf("%s comes after %s", got[i], got[i-1])
		}
	}
	return strings.Join(slices.Sorted(maps.Values(places)), ", ")
}
