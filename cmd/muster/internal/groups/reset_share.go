package groups

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/cmd/muster/internal/cli"
)

// executeShareReset has the partitions of a share group begin at the new offsets. What was known
// of their records is forgotten.
func executeShareReset(ctx context.Context, client *kgo.Client, name string, rows []resetPartition) error {
	req := kmsg.NewPtrAlterShareGroupOffsetsRequest()
	req.GroupID = name
	at := map[string]int{}
	for i := range rows {
		r := &rows[i]
		if r.New == nil { // A partition that begins there already may have records beyond that are done with.
			continue
		}
		if _, ok := at[r.Topic]; !ok {
			at[r.Topic] = len(req.Topics)
			t := kmsg.NewAlterShareGroupOffsetsRequestTopic()
			t.Topic = r.Topic
			req.Topics = append(req.Topics, t)
		}
		p := kmsg.NewAlterShareGroupOffsetsRequestTopicPartition()
		p.Partition, p.StartOffset = r.Partition, *r.New
		t := &req.Topics[at[r.Topic]]
		t.Partitions = append(t.Partitions, p)
	}
	if len(req.Topics) == 0 {
		return nil
	}
	resp, err := req.RequestWith(ctx, client)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	switch {
	case errors.Is(err, kerr.NonEmptyGroup):
		return fmt.Errorf("a member joined share group %s meanwhile, so the broker refused; stop it and run this again", name)
	case err != nil:
		return cli.GroupError(name, err)
	}
	return noteShareReset(resp, rows)
}

// noteShareReset notes what the broker refused.
func noteShareReset(resp *kmsg.AlterShareGroupOffsetsResponse, rows []resetPartition) error {
	var failed []error
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			err := kerr.ErrorForCode(p.ErrorCode)
			if err == nil {
				continue
			}
			failed = append(failed, fmt.Errorf("%s-%d: %w", t.Topic, p.Partition, cli.Plain(err)))
			for i := range rows {
				if rows[i].Topic == t.Topic && rows[i].Partition == p.Partition {
					text := cli.Plain(err).Error()
					rows[i].Error = &text
				}
			}
		}
	}
	return errors.Join(failed...)
}
