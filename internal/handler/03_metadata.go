// Metadata (key 3) tells where brokers are and who leads which partition.
//
//	v1   controller, null = all topics   v8   authorized operations
//	v2   cluster id                      v9   flexible
//	v4   auto-creation can be declined   v10  topic ids; v12 look-up by id
//	v7   leader epochs                   v13  top-level error
//
// Left out: offline replicas (there are none).

package handler

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/audit"
	"muster/internal/auth"
	"muster/internal/metadata"
	"muster/internal/protocol"
)

// errNoBrokers closes the connection of whoever asks for the brokers when there are
// none: this one has signed off, and is about to stop, or was taken for dead and has yet
// to join again. A client that were told so would forget the only broker that it knows:
// librdkafka then looks for no other for minutes.
var errNoBrokers = fmt.Errorf("no broker is there to be told of: %w", protocol.ErrAway)

func (h *Handler) metadata(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.MetadataRequest)
	resp := req.ResponseKind().(*kmsg.MetadataResponse)
	image := c.image
	if all := req.Topics == nil || req.Version == 0 && len(req.Topics) == 0; all {
		for _, t := range image.Topics() {
			if c.sees(auth.Describe, auth.Topic, t.Name) {
				resp.Topics = append(resp.Topics, c.describeTopic(image, t, req.IncludeTopicAuthorizedOperations))
			}
		}
	}
	if req.Topics = once(req.Topics, metadataKey); len(req.Topics) > 0 {
		counted := h.mutations(c, true)
		image = h.autoCreate(ctx, c, req, counted)
		counted.settle(c, resp)
	}
	for _, t := range req.Topics {
		resp.Topics = append(resp.Topics, c.lookUp(image, t, req))
	}
	if len(image.Brokers) == 0 {
		return nil, errNoBrokers
	}
	for i := range image.Brokers {
		b := &image.Brokers[i]
		e, ok := b.Endpoint(c.origin.Listener)
		if !ok {
			continue
		}
		out := kmsg.NewMetadataResponseBroker()
		out.NodeID, out.Host, out.Port = b.ID, e.Host, e.Port
		if b.Rack != "" {
			out.Rack = &b.Rack
		}
		resp.Brokers = append(resp.Brokers, out)
	}
	resp.ClusterID = &image.ClusterID
	resp.ControllerID = image.Controller
	if req.IncludeClusterAuthorizedOperations {
		resp.AuthorizedOperations = c.clusterOperations()
	}
	return resp, nil
}

// autoCreate creates the topics that were asked for by name and do not exist,
// if broker and client want that and the client may. It returns the image to answer
// from. Over the quota of changes none are created, and the client asks again later.
func (h *Handler) autoCreate(ctx context.Context, c *call, req *kmsg.MetadataRequest, counted *mutations) *metadata.Image {
	image := c.image
	if !c.creates(req) {
		return image
	}
	var missing []metadata.NewTopic
	for _, t := range req.Topics {
		if !byID(t) && c.may(auth.Describe, auth.Topic, *t.Topic) &&
			image.Topic(*t.Topic) == nil && createdOnDemand(*t.Topic) && c.mayCreate(*t.Topic) &&
			counted.allow(newPartitions(image, -1)) == nil {
			missing = append(missing, metadata.NewTopic{Name: *t.Topic, Partitions: -1, Replication: -1, Set: h.layoutFor(c)})
		}
	}
	if len(missing) == 0 {
		return image
	}
	_, errs := h.opts.Controller.CreateTopics(ctx, missing, false)
	for i, err := range errs {
		if err == nil {
			h.tell(c, audit.Entry{Kind: audit.TopicCreated, Resources: []audit.Resource{{Type: audit.TypeTopic, Name: missing[i].Name, Detail: "on demand"}}})
		}
		if code, _ := h.code(err); code != 0 && code != kerr.TopicAlreadyExists.Code {
			h.opts.Logger.Warn("topic could not be created automatically", "topic", missing[i].Name, "error", err)
		}
	}
	return h.opts.Controller.Image()
}

// creates says whether a request creates topics that are not there.
func (c *call) creates(req *kmsg.MetadataRequest) bool {
	return c.image.Config.Bool("auto.create.topics.enable") && (req.Version < 4 || req.AllowAutoTopicCreation)
}

// createdOnDemand says whether asking for a topic may create it.
func createdOnDemand(name string) bool {
	if metadata.IsInternal(name) {
		return metadata.CreatedOnDemand(name)
	}
	return metadata.CheckTopicName(name) == nil
}

// byID says whether a topic is asked for by its id. Java clients then send an
// empty name and not null.
func byID(t kmsg.MetadataRequestTopic) bool { return t.TopicID != [16]byte{} || t.Topic == nil }

// metadataKey is what a topic is asked for by.
func metadataKey(t *kmsg.MetadataRequestTopic) string {
	if byID(*t) {
		return "id " + string(t.TopicID[:])
	}
	return *t.Topic
}

// lookUp describes one topic that was asked for. Whether there is a topic that the
// client may not see is not told; ids are no secret, as in Kafka, but the name is.
func (c *call) lookUp(image *metadata.Image, asked kmsg.MetadataRequestTopic, req *kmsg.MetadataRequest) kmsg.MetadataResponseTopic {
	out := kmsg.NewMetadataResponseTopic()
	var t *metadata.Topic
	switch {
	case byID(asked):
		t = image.TopicByID(asked.TopicID)
		out.TopicID, out.ErrorCode = asked.TopicID, kerr.UnknownTopicID.Code
		if t != nil && !c.may(auth.Describe, auth.Topic, t.Name) {
			t, out.ErrorCode = nil, kerr.TopicAuthorizationFailed.Code
		}
	case !c.may(auth.Describe, auth.Topic, *asked.Topic):
		out.Topic, out.ErrorCode = asked.Topic, kerr.TopicAuthorizationFailed.Code
	default:
		t = image.Topic(*asked.Topic)
		out.Topic, out.ErrorCode = asked.Topic, kerr.UnknownTopicOrPartition.Code
		if t == nil && c.creates(req) && !c.mayCreate(*asked.Topic) {
			out.ErrorCode = kerr.TopicAuthorizationFailed.Code
		} else if metadata.CheckTopicName(*asked.Topic) != nil {
			out.ErrorCode = kerr.InvalidTopicException.Code
		}
	}
	if t == nil {
		return out
	}
	return c.describeTopic(image, t, req.IncludeTopicAuthorizedOperations)
}

func (c *call) describeTopic(image *metadata.Image, t *metadata.Topic, operations bool) kmsg.MetadataResponseTopic {
	out := kmsg.NewMetadataResponseTopic()
	out.Topic, out.TopicID, out.IsInternal = &t.Name, t.ID, t.Internal
	if operations {
		out.AuthorizedOperations = c.operations(auth.Topic, t.Name)
	}
	for i, p := range t.Partitions {
		part := kmsg.NewMetadataResponseTopicPartition()
		part.Partition, part.Leader, part.LeaderEpoch = int32(i), p.Leader, p.LeaderEpoch
		part.Replicas, part.ISR = []int32{p.Leader}, []int32{p.Leader}
		if image.Broker(p.Leader) == nil {
			// Its last leader is gone and no one has taken over yet.
			part.ErrorCode, part.Leader, part.ISR = kerr.LeaderNotAvailable.Code, metadata.NoBroker, []int32{}
		}
		out.Partitions = append(out.Partitions, part)
	}
	return out
}
