// AddPartitionsToTxn (key 24) says which partitions a transaction is about to
// write to.
//
//	v0-1 the original fields; v2 PRODUCER_FENCED; v3 flexible
//	v4   several transactions, and questions whether a partition is in one; sent by
//	     partition leaders and group coordinators (KIP-890), and by some clients,
//	     which are served as in v3
//	v5   TRANSACTION_ABORTABLE
//
// Either all partitions are added or none: if one cannot be, the others are told
// OPERATION_NOT_ATTEMPTED. The coordinator decides that, but for internal topics:
// what a broker may add of them a client may not.

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
	"muster/internal/metadata"
)

// leastBatched is the first version about several transactions.
const leastBatched = 4

func (h *Handler) addPartitionsToTxn(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.AddPartitionsToTxnRequest)
	if req.Version >= leastBatched {
		return h.addBatched(ctx, c, req), nil
	}
	req.Topics, _ = distinct(req.Topics, func(t *kmsg.AddPartitionsToTxnRequestTopic) (string, *[]int32) {
		return t.Topic, &t.Partitions
	}, itself)
	if !c.may(auth.Write, auth.TransactionalID, req.TransactionalID) {
		return h.opts.Transactions.Fail(req, kerr.TransactionalIDAuthorizationFailed), nil
	}
	if resp, refused := c.refuseAdded(req); refused {
		return resp, nil
	}
	return h.awaitFrom(ctx, c, h.opts.Transactions, req.TransactionalID), nil
}

// refuseAdded says whether a client wants to write to an internal topic, or to one that
// it may not write to, and answers it then. With the brokers' versions come the brokers'
// rights.
func (c *call) refuseAdded(req *kmsg.AddPartitionsToTxnRequest) (resp *kmsg.AddPartitionsToTxnResponse, refused bool) {
	resp = req.ResponseKind().(*kmsg.AddPartitionsToTxnResponse)
	for _, t := range req.Topics {
		code := kerr.OperationNotAttempted.Code
		if metadata.IsInternal(t.Topic) || c.Version < leastBatched && !c.may(auth.Write, auth.Topic, t.Topic) {
			code, refused = kerr.TopicAuthorizationFailed.Code, true
		}
		out := kmsg.NewAddPartitionsToTxnResponseTopic()
		out.Topic = t.Topic
		for _, index := range t.Partitions {
			p := kmsg.NewAddPartitionsToTxnResponseTopicPartition()
			p.Partition, p.ErrorCode = index, code
			out.Partitions = append(out.Partitions, p)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp, refused
}

// addBatched serves the versions that brokers send.
func (h *Handler) addBatched(ctx context.Context, c *call, req *kmsg.AddPartitionsToTxnRequest) kmsg.Response {
	if !c.fromBroker() {
		return h.addForClient(ctx, c, req)
	}
	if len(req.Transactions) == 1 {
		t := &req.Transactions[0]
		distinctAdded(t)
		return c.asking(h.opts.Transactions).Do(ctx, t.TransactionalID, c.client(), req)
	}
	resp := req.ResponseKind().(*kmsg.AddPartitionsToTxnResponse)
	of := map[string]*kmsg.AddPartitionsToTxnRequestTransaction{}
	var ids []string
	for i := range req.Transactions {
		t := &req.Transactions[i]
		distinctAdded(t)
		if of[t.TransactionalID] == nil {
			ids = append(ids, t.TransactionalID)
		}
		of[t.TransactionalID] = t
	}
	part := func(some []string) kmsg.Request {
		out := kmsg.NewPtrAddPartitionsToTxnRequest()
		out.Version = req.Version
		for _, id := range some {
			out.Transactions = append(out.Transactions, *of[id])
		}
		return out
	}
	c.asking(h.opts.Transactions).Each(ctx, c.client(), ids, part, func(r kmsg.Response) {
		resp.Transactions = append(resp.Transactions, r.(*kmsg.AddPartitionsToTxnResponse).Transactions...)
	})
	return resp
}

// distinctAdded removes what a transaction names twice.
func distinctAdded(t *kmsg.AddPartitionsToTxnRequestTransaction) {
	t.Topics, _ = distinct(t.Topics, func(t *kmsg.AddPartitionsToTxnRequestTransactionTopic) (string, *[]int32) {
		return t.Topic, &t.Partitions
	}, itself)
}

// addForClient serves a client that uses the brokers' versions, for one transaction:
// as if it had sent the newest version that is meant for it. What only brokers may ask
// is refused as Kafka refuses it to those who are none.
func (h *Handler) addForClient(ctx context.Context, c *call, req *kmsg.AddPartitionsToTxnRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.AddPartitionsToTxnResponse)
	if !c.mayCluster(auth.ClusterAction) || len(req.Transactions) != 1 || req.Transactions[0].VerifyOnly {
		resp.ErrorCode = kerr.ClusterAuthorizationFailed.Code
		return resp
	}
	t := &req.Transactions[0]
	one := kmsg.NewPtrAddPartitionsToTxnRequest()
	one.Version = leastBatched - 1
	one.TransactionalID, one.ProducerID, one.ProducerEpoch = t.TransactionalID, t.ProducerID, t.ProducerEpoch
	distinctAdded(t)
	for _, topic := range t.Topics {
		one.Topics = append(one.Topics, kmsg.AddPartitionsToTxnRequestTopic{Topic: topic.Topic, Partitions: topic.Partitions})
	}
	answer, refused := c.refuseAdded(one)
	if !refused {
		c.req = one
		answer = h.awaitFrom(ctx, c, h.opts.Transactions, one.TransactionalID).(*kmsg.AddPartitionsToTxnResponse)
	}
	out := kmsg.NewAddPartitionsToTxnResponseTransaction()
	out.TransactionalID = t.TransactionalID
	for _, topic := range answer.Topics {
		rt := kmsg.NewAddPartitionsToTxnResponseTransactionTopic()
		rt.Topic = topic.Topic
		for _, p := range topic.Partitions {
			rp := kmsg.NewAddPartitionsToTxnResponseTransactionTopicPartition()
			rp.Partition, rp.ErrorCode = p.Partition, p.ErrorCode
			rt.Partitions = append(rt.Partitions, rp)
		}
		out.Topics = append(out.Topics, rt)
	}
	resp.Transactions = append(resp.Transactions, out)
	return resp
}
