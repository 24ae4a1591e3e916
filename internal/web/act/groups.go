package act

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/watch/groupview"
	"muster/internal/web/problem"
)

// ofGroup is the error of a code in an answer about a group. Another broker may have it.
func ofGroup[R kmsg.Response](o *outcome[R], group string, code int16, ours string) error {
	if code == 0 {
		return nil
	}
	var elsewhere *problem.Elsewhere
	wire := o.acts.GroupError(group, kerr.ErrorForCode(code))
	var none *groupview.NoGroupError
	switch {
	case errors.As(wire, &elsewhere):
		return elsewhere
	case errors.As(wire, &none):
		return &problem.Refused{Code: kerr.GroupIDNotFound.Code, Name: kerr.GroupIDNotFound.Message, Message: none.Error()}
	}
	switch code {
	case kerr.NonEmptyGroup.Code:
		ours = fmt.Sprintf("group %q has members; stop them first", group)
	case kerr.GroupSubscribedToTopic.Code:
		ours = fmt.Sprintf("members of group %q subscribe to the topic; stop them first", group)
	}
	return o.failed(code, nil, ours)
}

// used is what it means that a commit of someone who is no member is refused.
func used(code int16) int16 {
	switch code {
	case kerr.UnknownMemberID.Code, kerr.RebalanceInProgress.Code, kerr.IllegalGeneration.Code:
		return kerr.NonEmptyGroup.Code
	}
	return code
}

// Committed returns what a group has committed: of the partitions that are named, or of all.
func (a *Acts) Committed(ctx context.Context, who Asker, group string, of []groupview.TopicPartition) (map[groupview.TopicPartition]int64, error) {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Version = 8
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = group
	for topic, partitions := range byTopic(of) {
		t := kmsg.NewOffsetFetchRequestGroupTopic()
		t.Topic, t.Partitions = topic, partitions
		g.Topics = append(g.Topics, t)
	}
	req.Groups = append(req.Groups, g)
	o, err := request[*kmsg.OffsetFetchResponse](ctx, a, who, req)
	if err != nil {
		return nil, err
	}
	out := map[groupview.TopicPartition]int64{}
	for i := range o.answer.Groups {
		g := &o.answer.Groups[i]
		if err := ofGroup(&o, group, g.ErrorCode, ""); err != nil {
			return nil, err
		}
		for _, t := range g.Topics {
			for _, p := range t.Partitions {
				if err := o.failed(p.ErrorCode, nil, ""); err != nil {
					return nil, err
				}
				if p.Offset >= 0 {
					out[groupview.TopicPartition{Topic: t.Topic, Partition: p.Partition}] = p.Offset
				}
			}
		}
	}
	return out, nil
}

// byTopic groups partitions by their topics.
func byTopic(of []groupview.TopicPartition) map[string][]int32 {
	out := map[string][]int32{}
	for _, tp := range of {
		out[tp.Topic] = append(out[tp.Topic], tp.Partition)
	}
	return out
}

// Commit sets committed offsets of a group. It is the commit of someone who is no member, which a
// coordinator takes only while there are none.
func (a *Acts) Commit(ctx context.Context, who Asker, group string, to map[groupview.TopicPartition]int64) error {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version, req.Group, req.Generation = 9, group, -1
	for topic, partitions := range byTopic(slices.Collect(maps.Keys(to))) {
		t := kmsg.NewOffsetCommitRequestTopic()
		t.Topic = topic
		for _, i := range partitions {
			p := kmsg.NewOffsetCommitRequestTopicPartition()
			p.Partition, p.Offset = i, to[groupview.TopicPartition{Topic: topic, Partition: i}]
			t.Partitions = append(t.Partitions, p)
		}
		req.Topics = append(req.Topics, t)
	}
	o, err := request[*kmsg.OffsetCommitResponse](ctx, a, who, req)
	if err != nil {
		return err
	}
	var failed error
	n := 0
	for _, t := range o.answer.Topics {
		for _, p := range t.Partitions {
			if err := ofGroup(&o, group, used(p.ErrorCode), ""); err != nil {
				n++
				failed = cmp.Or(failed, err)
			}
		}
	}
	var refused *problem.Refused
	if n > 0 && n < len(to) && errors.As(failed, &refused) {
		refused.Message = fmt.Sprintf("%d of %d partitions were not moved, the others were: %s", n, len(to), refused.Message)
	}
	return failed
}

// DeleteGroup deletes a group without members.
func (a *Acts) DeleteGroup(ctx context.Context, who Asker, group string) error {
	req := kmsg.NewPtrDeleteGroupsRequest()
	req.Version, req.Groups = 2, []string{group}
	o, err := request[*kmsg.DeleteGroupsResponse](ctx, a, who, req)
	if err != nil {
		return err
	}
	if len(o.answer.Groups) != 1 {
		return errNoOutcome
	}
	return ofGroup(&o, group, o.answer.Groups[0].ErrorCode, "")
}

// DeleteOffsets deletes committed offsets of a group.
func (a *Acts) DeleteOffsets(ctx context.Context, who Asker, group, topic string, partitions []int32) error {
	req := kmsg.NewPtrOffsetDeleteRequest()
	req.Group = group
	t := kmsg.NewOffsetDeleteRequestTopic()
	t.Topic = topic
	for _, i := range partitions {
		p := kmsg.NewOffsetDeleteRequestTopicPartition()
		p.Partition = i
		t.Partitions = append(t.Partitions, p)
	}
	req.Topics = append(req.Topics, t)
	o, err := request[*kmsg.OffsetDeleteResponse](ctx, a, who, req)
	if err != nil {
		return err
	}
	if err := ofGroup(&o, group, o.answer.ErrorCode, ""); err != nil {
		return err
	}
	for _, t := range o.answer.Topics {
		for _, p := range t.Partitions {
			if err := ofGroup(&o, group, p.ErrorCode, ""); err != nil {
				return err
			}
		}
	}
	return nil
}

// RemoveMember removes a member from a group.
func (a *Acts) RemoveMember(ctx context.Context, who Asker, group string, m *MemberToRemove) error {
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Version, req.Group = 5, group
	leaver := kmsg.NewLeaveGroupRequestMember()
	reason := cmp.Or(m.Reason, fmt.Sprintf("removed by %s over HTTP", who.Principal))
	leaver.MemberID, leaver.Reason = m.Member, &reason
	missing := fmt.Sprintf("group %q has no member %q", group, m.Member)
	if m.Instance != "" {
		leaver.InstanceID = &m.Instance
		missing = fmt.Sprintf("group %q has no static member %q", group, m.Instance)
	}
	req.Members = append(req.Members, leaver)
	o, err := request[*kmsg.LeaveGroupResponse](ctx, a, who, req)
	if err != nil {
		return err
	}
	if err := ofGroup(&o, group, o.answer.ErrorCode, missing); err != nil {
		return err
	}
	if len(o.answer.Members) != 1 {
		return errNoOutcome
	}
	return ofGroup(&o, group, o.answer.Members[0].ErrorCode, missing)
}
