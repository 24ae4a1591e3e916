package records

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/cmd/muster/internal/cli"
	"muster/cmd/muster/internal/source"
	"muster/internal/watch/groupview"
)

const (
	// commitInterval is how often a member commits while records come.
	commitInterval = time.Second
	// leaveTimeout is how long it may take to commit and leave in the end.
	leaveTimeout = 5 * time.Second
)

// groupMember prints the records that it is given as a member of a group.
type groupMember struct {
	group  string
	commit bool
	limit  int64 // How many records to print, 0 for all.

	write recordWriter
	flush func() error

	mu      sync.Mutex // The client calls back from goroutines of its own.
	warn    func(format string, args ...any)
	owned   map[source.TopicPartition]bool
	printed map[string]map[int32]kgo.EpochOffset // What is printed and not yet committed.
	count   int64
}

// checkGroup refuses what makes no sense together with --group, or without it.
func (f *consumeFlags) checkGroup(cmd *cobra.Command, start from) error {
	given := cmd.Flags().Changed
	switch {
	case given("group") && f.group == "":
		return cli.Usagef("--group is empty; it takes the name of a group")
	case f.group == "" && f.commit:
		return cli.Usagef("--commit needs --group: offsets are committed for a group")
	case f.group == "":
		return nil
	case len(f.partitions) > 0:
		return cli.Usagef("--partition cannot be used with --group: the group decides who reads which partition")
	case start.kind != fromBeginning && start.kind != fromEnd:
		return cli.Usagef("--from is beginning or end with --group, for partitions without a committed offset; to move the group's offsets: muster groups reset %s", f.group)
	}
	return nil
}

// consumeInGroup joins a group and prints what it is given, until it is
// interrupted or has printed enough.
func consumeInGroup(cmd *cobra.Command, flags *consumeFlags, topics []string, start from, isolation kgo.IsolationLevel, write recordWriter, flush func() error) error {
	ctx := cmd.Context()
	admin, err := flags.Admin(ctx)
	if err != nil {
		return err
	}
	_, missing, err := cli.FindTopics(ctx, admin, topics)
	admin.Close()
	if err = errors.Join(append(missing, err)...); err != nil {
		return err
	}
	m := &groupMember{
		group: flags.group, commit: flags.commit, limit: flags.count, write: write, flush: flush,
		warn:  func(format string, args ...any) { fmt.Fprintf(cmd.ErrOrStderr(), "muster: "+format+"\n", args...) },
		owned: map[source.TopicPartition]bool{}, printed: map[string]map[int32]kgo.EpochOffset{},
	}
	client, err := flags.Connect(ctx, append(source.ConsumerOptions(isolation), m.options(topics, start)...)...)
	if err != nil {
		return err
	}
	return m.run(ctx, client)
}

func (m *groupMember) options(topics []string, start from) []kgo.Opt {
	reset := kgo.NewOffset().AtStart()
	if start.kind == fromEnd {
		reset = kgo.NewOffset().AtEnd()
	}
	return []kgo.Opt{
		kgo.ConsumerGroup(m.group), kgo.ConsumeTopics(topics...), kgo.ConsumeResetOffset(reset),
		// All that are known, so that it can join any group of consumers.
		kgo.Balancers(kgo.CooperativeStickyBalancer(), kgo.StickyBalancer(), kgo.RangeBalancer(), kgo.RoundRobinBalancer()),
		// What is printed is committed before anyone else gets the partition.
		kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, tps map[string][]int32) { m.assigned(tps) }),
		kgo.OnPartitionsRevoked(m.revoked),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, tps map[string][]int32) { m.lost(tps) }),
	}
}

// run prints until the end, then commits what it printed and leaves the group. An
// interrupt is the ordinary end, and so is no error.
func (m *groupMember) run(ctx context.Context, client *kgo.Client) error {
	err := m.read(ctx, client)
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = nil
	}
	soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	commitErr := m.commitPrinted(soon, client)
	client.AllowRebalance()
	leaveErr := client.LeaveGroupContext(soon)
	client.CloseAllowingRebalance()
	if leaveErr != nil {
		leaveErr = fmt.Errorf("could not leave group %s, which waits for the session timeout now: %w", m.group, cli.Plain(leaveErr))
	}
	return errors.Join(err, commitErr, leaveErr)
}

func (m *groupMember) read(ctx context.Context, client *kgo.Client) error {
	committed := time.Now()
	for {
		pollCtx, cancel := context.WithTimeout(ctx, idleCheck)
		fetches := client.PollFetches(pollCtx)
		cancel()
		full, err := m.print(fetches)
		if flushErr := m.flush(); err == nil {
			err = flushErr
		}
		switch {
		case full || err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		if time.Since(committed) >= commitInterval {
			committed = time.Now()
			if err := m.commitPrinted(ctx, client); err != nil && ctx.Err() == nil {
				m.say("%s", err)
			}
		}
		client.AllowRebalance()
	}
}

// print prints what a poll returned, and says whether the limit is reached.
func (m *groupMember) print(fetches kgo.Fetches) (full bool, err error) {
	for _, e := range fetches.Errors() {
		if err := m.failed(e); err != nil {
			return false, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for records := fetches.RecordIter(); !records.Done(); {
		r := records.Next()
		if !r.Attrs.IsControl() {
			if err := m.write(r); err != nil {
				return false, err
			}
			m.count++
		}
		if m.printed[r.Topic] == nil {
			m.printed[r.Topic] = map[int32]kgo.EpochOffset{}
		}
		m.printed[r.Topic][r.Partition] = kgo.EpochOffset{Epoch: r.LeaderEpoch, Offset: r.Offset + 1}
		if m.limit > 0 && m.count == m.limit {
			return true, nil
		}
	}
	return false, nil
}

// failed says what an error of a poll means: nothing, something to tell, or the
// end. The client goes on by itself with what may pass.
func (m *groupMember) failed(e kgo.FetchError) error {
	var loss *kgo.ErrDataLoss
	var session *kgo.ErrGroupSession
	switch {
	case errors.Is(e.Err, context.DeadlineExceeded), errors.Is(e.Err, context.Canceled):
		return nil
	case errors.As(e.Err, &loss):
		m.say("%s", loss)
		return nil
	case !errors.As(e.Err, &session):
		return cli.TopicError(e.Topic, e.Err, "")
	case isFinal(session.Err):
		return cli.GroupError(m.group, session.Err)
	}
	m.say("still trying to be in group %s: %s", m.group, cli.Plain(session.Err))
	return nil
}

// isFinal says whether there is no use in trying further to be in a group.
func isFinal(err error) bool {
	var code *kerr.Error
	passes := []error{kerr.UnknownMemberID, kerr.IllegalGeneration, kerr.RebalanceInProgress, kerr.FencedMemberEpoch}
	return errors.As(err, &code) && !code.Retriable && !slices.Contains(passes, error(code))
}

// commitPrinted commits what was printed, if that is asked for.
func (m *groupMember) commitPrinted(ctx context.Context, client *kgo.Client) error {
	m.mu.Lock()
	offsets := m.printed
	m.printed = map[string]map[int32]kgo.EpochOffset{}
	m.mu.Unlock()
	if !m.commit || len(offsets) == 0 {
		return nil
	}
	var failed error
	client.CommitOffsetsSync(ctx, offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
		failed = err
		for i := 0; err == nil && i < len(resp.Topics); i++ {
			for _, p := range resp.Topics[i].Partitions {
				failed = errors.Join(failed, kerr.ErrorForCode(p.ErrorCode))
			}
		}
	})
	if failed == nil {
		return nil
	}
	return fmt.Errorf("what was printed could not be committed, and will be read again: %w", cli.Plain(failed))
}

// say writes a line to stderr.
func (m *groupMember) say(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.warn(format, args...)
}

func (m *groupMember) assigned(tps map[string][]int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for tp := range eachPartition(tps) {
		m.owned[tp] = true
	}
	switch {
	case len(tps) > 0:
		m.warn("assigned %s", formatPartitions(tps))
	case len(m.owned) == 0:
		m.warn("assigned nothing: other members of group %s have all partitions", m.group)
	}
}

// revoked is called before others are given partitions, and so is the time to
// commit.
func (m *groupMember) revoked(ctx context.Context, client *kgo.Client, tps map[string][]int32) {
	if err := m.commitPrinted(ctx, client); err != nil {
		m.say("%s", err)
	}
	m.drop(tps, "revoked %s")
}

// lost is called when others may have been given partitions already.
func (m *groupMember) lost(tps map[string][]int32) {
	m.mu.Lock()
	for tp := range eachPartition(tps) {
		delete(m.printed[tp.Topic], tp.Partition)
	}
	m.mu.Unlock()
	m.drop(tps, "lost %s, since the group has gone on without this member")
}

func (m *groupMember) drop(tps map[string][]int32, format string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for tp := range eachPartition(tps) {
		delete(m.owned, tp)
	}
	if len(tps) > 0 {
		m.warn(format, formatPartitions(tps))
	}
}

// eachPartition goes through partitions.
func eachPartition(tps map[string][]int32) iter.Seq[source.TopicPartition] {
	return func(yield func(source.TopicPartition) bool) {
		for topic, partitions := range tps {
			for _, p := range partitions {
				if !yield(source.TopicPartition{Topic: topic, Partition: p}) {
					return
				}
			}
		}
	}
}

// formatPartitions words partitions as muster groups describe does.
func formatPartitions(tps map[string][]int32) string {
	var out []groupview.Assigned
	for _, topic := range slices.Sorted(maps.Keys(tps)) {
		out = append(out, groupview.Assigned{Topic: topic, Partitions: slices.Sorted(slices.Values(tps[topic]))})
	}
	return cli.FormatAssigned(out)
}
