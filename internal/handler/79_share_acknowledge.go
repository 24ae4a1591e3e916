// ShareAcknowledge (key 79) is what a member of a share group (KIP-932) says of its records:
// accept, release, reject, that there is none, or that it needs more time.
//
//	v1 the first that is stable; v2 renewal (KIP-1222)
//
// Left out: dead letters.

package handler

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/protocol"
	shared "muster/internal/share/session"
	"muster/internal/share/window"
)

func (h *Handler) shareAcknowledge(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.ShareAcknowledgeRequest)
	resp := req.ResponseKind().(*kmsg.ShareAcknowledgeResponse)
	if err := c.admit(req.GroupID, req.MemberID); err != nil {
		resp.ErrorCode = err.Code
		return resp, nil
	}
	s := &sharing{h: h, c: c, group: *req.GroupID, member: *req.MemberID, epoch: req.ShareSessionEpoch, renew: req.IsRenewAck, all: true}
	named := 0
	for i := range req.Topics {
		named += len(req.Topics[i].Partitions)
	}
	if !c.origin.Conn.Hold(named * shareWork) {
		return nil, protocol.ErrMemory
	}
	if err := s.step(); err != nil {
		resp.ErrorCode = err.Code
		return resp, nil
	}
	for i := range req.Topics {
		for j := range req.Topics[i].Partitions {
			p := &req.Topics[i].Partitions[j]
			var acks []window.Acknowledgement
			for k := range p.AcknowledgementBatches {
				b := &p.AcknowledgementBatches[k]
				acks = append(acks, window.Acknowledgement{First: b.FirstOffset, Last: b.LastOffset, Types: b.AcknowledgeTypes})
			}
			s.name(req.Topics[i].TopicID, p.Partition, acks)
		}
	}
	s.acknowledge()
	s.release()
	req.Topics = nil
	s.settle(ctx)
	resp.AcquisitionLockTimeoutMillis = int32(h.opts.Shares.Settings(s.group).Lock.Milliseconds())
	for i := range s.said {
		s.answer(resp, &s.said[i])
	}
	return resp, nil
}

// step goes on in the session of a request that fetches nothing.
func (s *sharing) step() *kerr.Error {
	switch s.epoch {
	case shared.Initial:
		return kerr.InvalidShareSessionEpoch
	case shared.Final:
		return s.h.opts.Shares.Sessions.End(s.request())
	}
	return s.h.opts.Shares.Sessions.Advance(s.request())
}

// answer puts the outcome of a partition into the response, under its topic.
func (s *sharing) answer(resp *kmsg.ShareAcknowledgeResponse, a *said) {
	n := len(resp.Topics)
	if n == 0 || resp.Topics[n-1].TopicID != a.Topic {
		t := kmsg.NewShareAcknowledgeResponseTopic()
		t.TopicID = a.Topic
		resp.Topics = append(resp.Topics, t)
		n++
	}
	p := kmsg.NewShareAcknowledgeResponseTopicPartition()
	p.Partition, p.ErrorCode = a.Index, errCode(a.err)
	topic, _ := topicName(s.c.image, a.Topic)
	hint, broker := s.shareHint(topic, a.Index, a.err)
	p.CurrentLeader.LeaderID, p.CurrentLeader.LeaderEpoch = hint.ID, hint.Epoch
	if broker != nil && !slices.ContainsFunc(resp.NodeEndpoints, func(b kmsg.ShareAcknowledgeResponseNodeEndpoint) bool { return b.NodeID == broker.NodeID }) {
		b := kmsg.NewShareAcknowledgeResponseNodeEndpoint()
		b.NodeID, b.Host, b.Port, b.Rack = broker.NodeID, broker.Host, broker.Port, broker.Rack
		resp.NodeEndpoints = append(resp.NodeEndpoints, b)
	}
	resp.Topics[n-1].Partitions = append(resp.Topics[n-1].Partitions, p)
}
