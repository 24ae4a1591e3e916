// CreateTopics (key 19) creates topics.
//
//	v1   validate only      v5   settings in the answer, flexible
//	v4   -1 for defaults    v7   topic ids in the answer
//
// A replica assignment may name any brokers there are. The first replica of a
// partition leads it, until brokers come or go and leaders are spread anew.

package handler

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
)

func (h *Handler) createTopics(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.CreateTopicsRequest)
	resp := req.ResponseKind().(*kmsg.CreateTopicsResponse)
	name := func(t *kmsg.CreateTopicsRequestTopic) string { return t.Topic }
	repeated := repeatedIn(req.Topics, name)
	req.Topics = once(req.Topics, name)
	var asked []metadata.NewTopic
	var errs []error
	for i := range req.Topics {
		nt, err := h.newTopic(c.image, &req.Topics[i])
		if !c.mayCreate(nt.Name) {
			err = kerr.TopicAuthorizationFailed // And no more is said of it.
		}
		if repeated[nt.Name] {
			err = metadata.Refuse(kerr.InvalidRequest, "topic %q is named more than once in the request", nt.Name)
		}
		asked, errs = append(asked, nt), append(errs, err)
	}
	created := h.createValid(ctx, asked, errs, req.ValidateOnly)
	for i, nt := range asked {
		out := kmsg.NewCreateTopicsResponseTopic()
		out.Topic = nt.Name
		out.ErrorCode, out.ErrorMessage = h.code(errs[i])
		if errs[i] == nil {
			c.fillCreated(&out, created[i], h.opts.Controller.Image())
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp, nil
}

// createValid creates the topics without an error, and fills in errors of those
// that could not be created.
func (h *Handler) createValid(ctx context.Context, asked []metadata.NewTopic, errs []error, validateOnly bool) []*metadata.Topic {
	var valid []metadata.NewTopic
	var at []int
	for i := range asked {
		if errs[i] == nil {
			valid, at = append(valid, asked[i]), append(at, i)
		}
	}
	created := make([]*metadata.Topic, len(asked))
	topics, failed := h.opts.Controller.CreateTopics(ctx, valid, validateOnly)
	for i, pos := range at {
		created[pos], errs[pos] = topics[i], failed[i]
	}
	return created
}

// newTopic reads one topic of the request.
func (h *Handler) newTopic(image *metadata.Image, t *kmsg.CreateTopicsRequestTopic) (metadata.NewTopic, error) {
	nt := metadata.NewTopic{Name: t.Topic, Partitions: t.NumPartitions, Replication: t.ReplicationFactor, Set: map[string]string{}}
	for _, cfg := range t.Configs {
		if cfg.Value == nil {
			return nt, metadata.Refuse(kerr.InvalidConfig, "setting %q needs a value", cfg.Name)
		}
		nt.Set[cfg.Name] = *cfg.Value
	}
	if metadata.IsInternal(t.Topic) {
		return nt, metadata.Refuse(kerr.InvalidTopicException, "topic %q is internal and cannot be created by clients", t.Topic)
	}
	if len(t.ReplicaAssignment) == 0 {
		return nt, nil
	}
	if t.NumPartitions != -1 || t.ReplicationFactor != -1 {
		return nt, metadata.Refuse(kerr.InvalidRequest, "with a replica assignment, partitions and replication factor must be -1")
	}
	nt.Partitions, nt.Replication = int32(len(t.ReplicaAssignment)), 1
	nt.Leaders = slices.Repeat([]int32{metadata.NoBroker}, len(t.ReplicaAssignment))
	for _, a := range t.ReplicaAssignment {
		if a.Partition < 0 || a.Partition >= nt.Partitions || nt.Leaders[a.Partition] != metadata.NoBroker {
			return nt, metadata.Refuse(kerr.InvalidReplicaAssignment, "the assignment must name each partition from 0 on once")
		}
		leader, err := firstReplica(image, a.Replicas, t.ReplicaAssignment[0].Replicas)
		if err != nil {
			return nt, err
		}
		nt.Leaders[a.Partition] = leader
	}
	return nt, nil
}

// firstReplica returns the first replica of a partition in an assignment. All of
// them must be brokers, and as many as another partition has.
func firstReplica(image *metadata.Image, replicas, other []int32) (int32, error) {
	if len(replicas) == 0 || len(replicas) != len(other) {
		return 0, metadata.Refuse(kerr.InvalidReplicaAssignment, "every partition needs the same number of replicas, one at least")
	}
	for i, id := range replicas {
		if image.Broker(id) == nil || slices.Contains(replicas[:i], id) {
			return 0, metadata.Refuse(kerr.InvalidReplicaAssignment, "replica %d is named twice, or is not a broker", id)
		}
	}
	return replicas[0], nil
}

// fillCreated tells what a topic was created with, to those who may know.
func (c *call) fillCreated(out *kmsg.CreateTopicsResponseTopic, t *metadata.Topic, image *metadata.Image) {
	out.TopicID = t.ID
	if !c.sees(auth.DescribeConfigs, auth.Topic, t.Name) {
		out.NumPartitions, out.ReplicationFactor = -1, -1
		out.ConfigErrorCode = kerr.TopicAuthorizationFailed.Code
		return
	}
	out.NumPartitions, out.ReplicationFactor = int32(len(t.Partitions)), 1
	for _, d := range config.TopicDefs() {
		cfg := kmsg.NewCreateTopicsResponseTopicConfig()
		value, source := topicSetting(image, t, &d)
		cfg.Name, cfg.Value, cfg.Source = d.Name, &value, int8(source)
		out.Configs = append(out.Configs, cfg)
	}
}
