package records

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/cmd/muster/internal/cli"
)

// mostShared is how many records a member of a share group has at a time at most.
const mostShared = 500

// shareMember prints the records that it is given as a member of a share group (KIP-932), and
// says of each what becomes of it.
type shareMember struct {
	group  string
	status kgo.AckStatus
	limit  int64 // How many records to print, 0 for all.

	write recordWriter
	flush func() error

	mu   sync.Mutex // The client calls back from goroutines of its own.
	warn func(format string, args ...any)
}

// checkShare refuses what makes no sense together with --share, or without it.
func (f *consumeFlags) checkShare(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	switch {
	case given("share") && f.share == "":
		return cli.Usagef("--share is empty; it takes the name of a share group")
	case f.share == "" && (f.release || f.reject):
		return cli.Usagef("--release and --reject need --share: only members of share groups acknowledge records")
	case f.share == "":
		return nil
	case len(f.partitions) > 0:
		return cli.Usagef("--partition cannot be used with --share: the group decides who reads which partition")
	case given("from"):
		return cli.Usagef("--from cannot be used with --share: the group's share.auto.offset.reset says where it begins; to move it: muster groups reset %s", f.share)
	case given("isolation"):
		return cli.Usagef("--isolation cannot be used with --share: the group's share.isolation.level says that")
	}
	return nil
}

// consumeShared joins a share group and prints what it is given, until it is interrupted or has
// printed enough.
func consumeShared(cmd *cobra.Command, flags *consumeFlags, topics []string, write recordWriter, flush func() error) error {
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
	m := &shareMember{
		group: flags.share, status: kgo.AckAccept, limit: flags.count, write: write, flush: flush,
		warn: func(format string, args ...any) { fmt.Fprintf(cmd.ErrOrStderr(), "muster: "+format+"\n", args...) },
	}
	switch {
	case flags.release:
		m.status = kgo.AckRelease
	case flags.reject:
		m.status = kgo.AckReject
	}
	most := int32(mostShared)
	if m.limit > 0 {
		most = int32(min(m.limit, mostShared))
	}
	client, err := flags.Connect(ctx, kgo.ShareGroup(m.group), kgo.ConsumeTopics(topics...),
		// Records that it does not print are not locked for it.
		kgo.ShareMaxRecordsStrict(), kgo.ShareMaxRecords(most), kgo.ShareAckCallback(m.acknowledged))
	if err != nil {
		return err
	}
	return m.run(ctx, client)
}

// run prints until the end, and leaves the group. An interrupt is the ordinary end, and so is
// no error. What is not acknowledged then is released.
func (m *shareMember) run(ctx context.Context, client *kgo.Client) error {
	err := m.read(ctx, client)
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = nil
	}
	soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	leaveErr := client.LeaveGroupContext(soon)
	client.Close()
	if leaveErr != nil {
		leaveErr = fmt.Errorf("could not leave share group %s, which waits for the session timeout now: %w", m.group, cli.Plain(leaveErr))
	}
	return errors.Join(err, leaveErr)
}

func (m *shareMember) read(ctx context.Context, client *kgo.Client) error {
	for printed := int64(0); ; {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		records := fetches.Records()
		var surplus []*kgo.Record
		if m.limit > 0 && int64(len(records)) > m.limit-printed {
			records, surplus = records[:m.limit-printed], records[m.limit-printed:]
		}
		for _, r := range records {
			if err := m.write(r); err != nil {
				return err
			}
		}
		if err := m.flush(); err != nil { // No one has seen them: they are released.
			return err
		}
		printed += int64(len(records))
		if err := m.acknowledge(ctx, client, records, surplus); err != nil {
			return err
		}
		if m.limit > 0 && printed == m.limit {
			return nil
		}
		for _, e := range fetches.Errors() {
			if err := m.failed(e); err != nil {
				return err
			}
		}
	}
}

// acknowledge says what becomes of the records that were printed, and waits until the broker
// knows, even if it is interrupted. The others are given back.
func (m *shareMember) acknowledge(ctx context.Context, client *kgo.Client, printed, surplus []*kgo.Record) error {
	if len(printed) > 0 {
		client.MarkAcks(m.status, printed...)
	}
	if len(surplus) > 0 {
		client.MarkAcks(kgo.AckRelease, surplus...)
	}
	if len(printed)+len(surplus) == 0 {
		return nil // None would stand for all.
	}
	soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	if err := client.FlushAcks(soon); err != nil && ctx.Err() == nil {
		m.say("the broker has not said yet that it knows what became of the last records: %s", cli.Plain(err))
	}
	return ctx.Err()
}

// acknowledged tells of acknowledgements that the broker refused.
func (m *shareMember) acknowledged(_ *kgo.Client, results kgo.ShareAckResults) {
	for _, r := range results {
		if r.Err != nil {
			m.say("records of %s-%d that were printed may be delivered again: %s", r.Topic, r.Partition, cli.Plain(r.Err))
		}
	}
}

// failed says what an error of a poll means: something to tell, or the end. The client goes on
// by itself with what may pass.
func (m *shareMember) failed(e kgo.FetchError) error {
	var session *kgo.ErrGroupSession
	switch {
	case errors.Is(e.Err, context.DeadlineExceeded), errors.Is(e.Err, context.Canceled):
		return nil
	case !errors.As(e.Err, &session):
		return cli.TopicError(e.Topic, e.Err, "")
	case isFinal(session.Err):
		return cli.GroupError(m.group, session.Err)
	}
	m.say("still trying to be in share group %s: %s", m.group, cli.Plain(session.Err))
	return nil
}

// say writes a line to stderr.
func (m *shareMember) say(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.warn(format, args...)
}
