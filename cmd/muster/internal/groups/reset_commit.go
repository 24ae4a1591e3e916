package groups

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"muster/cmd/muster/internal/cli"
	"muster/internal/journal"
	"muster/internal/watch/groupview"
)

const (
	// commitVersion is the last version of OffsetCommit in which topics have names.
	commitVersion = 9
	// resetTimeout is how long the answer is waited for, which comes when members have rejoined.
	// The broker gives up before that.
	resetTimeout = 12 * time.Minute
)

// executeReset commits the new offsets as one that is no member, and returns the name of the
// reset if it moved something. A group that has members is brought to a point where it can
// take them; brokers other than muster refuse that.
func executeReset(ctx context.Context, flags *resetFlags, g *groupview.Group, name string, rows []resetPartition) (string, error) {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation = name, -1
	for i := range rows {
		r := &rows[i]
		if !r.changes() {
			continue
		}
		at := slices.IndexFunc(req.Topics, func(t kmsg.OffsetCommitRequestTopic) bool { return t.Topic == r.Topic })
		if at < 0 {
			at = len(req.Topics)
			t := kmsg.NewOffsetCommitRequestTopic()
			t.Topic = r.Topic
			req.Topics = append(req.Topics, t)
		}
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset = r.Partition, *r.New
		req.Topics[at].Partitions = append(req.Topics[at].Partitions, p)
	}
	if len(req.Topics) == 0 {
		return "", nil
	}
	ask := journal.ResetAsk{Plan: "r" + strconv.FormatInt(time.Now().UnixMilli(), 36), Now: flags.now, Force: flags.force}
	ask.Set(&req.UnknownTags)
	versions := kversion.Stable()
	versions.SetMaxKeyVersion(req.Key(), commitVersion)
	client, err := flags.Connect(ctx, kgo.RequestTimeoutOverhead(resetTimeout), kgo.MaxVersions(versions))
	if err != nil {
		return "", err
	}
	defer client.Close()
	resp, err := commitOnce(ctx, client, req)
	if err != nil {
		return "", fmt.Errorf("%w\nwhether reset %s was applied is not known: muster groups history %s tells", cli.GroupError(name, err), ask.Plan, name)
	}
	moved, err := noteReset(resp, g, name, rows)
	if moved == 0 {
		return "", err
	}
	return ask.Plan, err
}

// commitOnce sends a request to the group's coordinator, again only if that has not begun with it:
// who loses an answer does not know whether the offsets were moved.
func commitOnce(ctx context.Context, client *kgo.Client, req *kmsg.OffsetCommitRequest) (*kmsg.OffsetCommitResponse, error) {
	admin := kadm.NewClient(client)
	deadline := time.Now().Add(cli.RequestTimeout)
	for {
		if _, err := admin.BrokerMetadata(ctx); err != nil {
			return nil, err
		}
		found := admin.FindGroupCoordinators(ctx, req.Group)
		c, ok := found[req.Group]
		if !ok || c.Err != nil {
			return nil, errors.Join(c.Err, found.Error())
		}
		answer, err := client.Broker(int(c.NodeID)).Request(ctx, req)
		if err != nil {
			return nil, err
		}
		resp := answer.(*kmsg.OffsetCommitResponse)
		begun := !slices.ContainsFunc(resp.Topics, func(t kmsg.OffsetCommitResponseTopic) bool {
			return len(t.Partitions) > 0 && (t.Partitions[0].ErrorCode == kerr.CoordinatorLoadInProgress.Code || t.Partitions[0].ErrorCode == kerr.CoordinatorNotAvailable.Code)
		})
		if begun || time.Now().After(deadline) {
			return resp, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// noteReset notes what was not moved, and says how many partitions were.
func noteReset(resp *kmsg.OffsetCommitResponse, g *groupview.Group, name string, rows []resetPartition) (moved int, err error) {
	codes := map[string]map[int32]int16{}
	for _, t := range resp.Topics {
		codes[t.Topic] = map[int32]int16{}
		for _, p := range t.Partitions {
			codes[t.Topic][p.Partition] = p.ErrorCode
		}
	}
	var failed []error
	joined := false
	for i := range rows {
		r := &rows[i]
		code, ok := codes[r.Topic][r.Partition]
		if !ok || !r.changes() {
			continue
		}
		err := kerr.ErrorForCode(code)
		if err == nil {
			moved++
			continue
		}
		text := cli.Plain(err).Error()
		r.Error = &text
		if errors.Is(err, kerr.UnknownMemberID) || errors.Is(err, kerr.RebalanceInProgress) || errors.Is(err, kerr.IllegalGeneration) {
			joined = true
			continue
		}
		failed = append(failed, fmt.Errorf("%s-%d: %w", r.Topic, r.Partition, cli.Plain(err)))
	}
	reason := string(journal.ResetReasonOf(&resp.UnknownTags))
	switch {
	case reason != "" && moved == 0:
		return 0, fmt.Errorf("nothing was moved: %s", reason)
	case joined && liveError(g) != nil: // A broker that does not know such resets.
		return moved, errors.Join(append(failed, liveError(g))...)
	case joined:
		failed = append(failed, fmt.Errorf("a member joined group %s meanwhile, so the broker refused; run this again", name))
	}
	return moved, errors.Join(failed...)
}
