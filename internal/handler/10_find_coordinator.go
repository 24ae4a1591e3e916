// FindCoordinator (key 10) tells which broker coordinates a group, or a
// transactional id, or the state of a share partition: the leader of its partition of
// __consumer_offsets, __transaction_state, or __share_group_state.
//
//	v0   groups only     v4   several keys
//	v1   key type        v5   error code of transactions
//	v3   flexible        v6   share partitions, as group:topic id:partition

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
	"muster/internal/coordinator"
	"muster/internal/metadata"
	"muster/internal/share/requests"
)

// coordinators are the topics whose leaders coordinate what a key of a type is
// the id of.
var coordinators = map[int8]string{0: metadata.OffsetsTopic, 1: metadata.TransactionsTopic, shareKey: metadata.ShareStateTopic}

// shareKey is the type of a key that is a share partition, and the first version that has it.
const (
	shareKey      = 2
	leastShareKey = 6
)

func (h *Handler) findCoordinator(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.FindCoordinatorRequest)
	resp := req.ResponseKind().(*kmsg.FindCoordinatorResponse)
	keys := req.CoordinatorKeys
	if req.Version < 4 {
		keys = []string{req.CoordinatorKey}
	}
	for _, key := range once(keys, func(key *string) string { return *key }) {
		resp.Coordinators = append(resp.Coordinators, h.findOne(ctx, c, req, key))
	}
	if req.Version < 4 {
		f := resp.Coordinators[0]
		resp.ErrorCode, resp.ErrorMessage, resp.NodeID, resp.Host, resp.Port = f.ErrorCode, f.ErrorMessage, f.NodeID, f.Host, f.Port
		resp.Coordinators = nil
	}
	return resp, nil
}

func (h *Handler) findOne(ctx context.Context, c *call, req *kmsg.FindCoordinatorRequest, key string) kmsg.FindCoordinatorResponseCoordinator {
	out := kmsg.NewFindCoordinatorResponseCoordinator()
	out.Key, out.NodeID, out.Port = key, -1, -1
	fail := func(err *kerr.Error, msg string) kmsg.FindCoordinatorResponseCoordinator {
		out.ErrorCode, out.ErrorMessage = err.Code, &msg
		return out
	}
	if err := c.mayFind(req.CoordinatorType, key); err != nil {
		return fail(err, err.Description)
	}
	topic, ok := coordinators[req.CoordinatorType]
	if !ok {
		return fail(kerr.InvalidRequest, "only groups, transactions and share partitions have a coordinator")
	}
	if req.CoordinatorType == shareKey {
		if _, ok := requests.ParseKey(key); !ok || req.Version < leastShareKey {
			return fail(kerr.InvalidRequest, "the key of a share partition is group:topic id:partition, from version 6 on")
		}
	}
	if err := h.ensureTopic(ctx, c.image, topic); err != nil {
		h.opts.Logger.Error("an internal topic could not be created", "topic", topic, "error", err)
		return fail(kerr.CoordinatorNotAvailable, err.Error())
	}
	if topic == metadata.TransactionsTopic {
		h.lately.note(c.client(), h.opts.Now())
	}
	b, e, ok := coordinatorOf(h.opts.Controller.Image(), topic, key, c.origin.Listener)
	if !ok {
		return fail(kerr.CoordinatorNotAvailable, "the coordinator cannot be reached by this listener now")
	}
	out.NodeID, out.Host, out.Port = b.ID, e.Host, e.Port
	return out
}

// mayFind says whether the client may know who coordinates something.
func (c *call) mayFind(kind int8, key string) *kerr.Error {
	op, t := auth.Describe, auth.Group
	switch kind {
	case 0:
	case 1:
		t = auth.TransactionalID
	case shareKey:
		op, t, key = auth.ClusterAction, auth.Cluster, auth.ClusterName
	default:
		return nil // There is no such thing.
	}
	if c.may(op, t, key) {
		return nil
	}
	return t.Denied()
}

// coordinatorOf returns the broker that coordinates a group or a transactional
// id, and where it is.
func coordinatorOf(image *metadata.Image, topic, id, listener string) (b *metadata.Broker, e metadata.Endpoint, ok bool) {
	t := image.Topic(topic)
	if t == nil {
		return nil, e, false
	}
	if b = image.Broker(t.Partitions[coordinator.PartitionFor(id, int32(len(t.Partitions)))].Leader); b == nil {
		return nil, e, false
	}
	e, ok = b.Endpoint(listener)
	return b, e, ok
}

// ensureTopic creates an internal topic when someone first needs it.
func (h *Handler) ensureTopic(ctx context.Context, image *metadata.Image, name string) error {
	// The newest metadata counts: a request may need it for many keys.
	if image.Topic(name) != nil || h.opts.Controller.Image().Topic(name) != nil {
		return nil
	}
	_, errs := h.opts.Controller.CreateTopics(ctx, []metadata.NewTopic{{Name: name}}, false)
	if code, _ := h.code(errs[0]); code == kerr.TopicAlreadyExists.Code {
		return nil
	}
	return errs[0]
}
