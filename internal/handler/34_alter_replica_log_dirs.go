// AlterReplicaLogDirs (key 34) moves replicas between the log directories of a broker.
// There is one, so that a replica can only be told to stay.
//
//	v0-1 the original fields; v2 flexible

package handler

import (
	"context"
	"path/filepath"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
)

func (h *Handler) alterReplicaLogDirs(_ context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.AlterReplicaLogDirsRequest)
	resp := req.ResponseKind().(*kmsg.AlterReplicaLogDirsResponse)
	allowed := c.mayCluster(auth.Alter)
	told, at := map[partitionName]bool{}, map[string]int{}
	for _, d := range req.Dirs {
		isOurs := filepath.Clean(d.Dir) == filepath.Clean(h.opts.LogDir)
		for _, t := range d.Topics {
			for _, index := range t.Partitions {
				name := partitionName{topic: t.Topic, index: index}
				if told[name] {
					continue
				}
				told[name] = true
				i, ok := at[t.Topic]
				if !ok {
					i = len(resp.Topics)
					at[t.Topic] = i
					out := kmsg.NewAlterReplicaLogDirsResponseTopic()
					out.Topic = t.Topic
					resp.Topics = append(resp.Topics, out)
				}
				part := kmsg.NewAlterReplicaLogDirsResponseTopicPartition()
				part.Partition = index
				switch _, err := h.find(c.image, t.Topic, index); {
				case !allowed:
					part.ErrorCode = kerr.ClusterAuthorizationFailed.Code
				case !isOurs:
					part.ErrorCode = kerr.LogDirNotFound.Code
				case err == kerr.NotLeaderForPartition:
					part.ErrorCode = kerr.ReplicaNotAvailable.Code // Another broker has it. Kafka says so here.
				case err != nil:
					part.ErrorCode = err.Code
				}
				resp.Topics[i].Partitions = append(resp.Topics[i].Partitions, part)
			}
		}
	}
	return resp, nil
}
