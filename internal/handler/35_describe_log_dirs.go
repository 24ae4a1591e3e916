// DescribeLogDirs (key 35) tells how much room partitions take on disk.
//
//	v1 the original fields; v2 flexible; v3 top-level error; v4 size of the volume

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
	"muster/internal/metadata"
)

func (h *Handler) describeLogDirs(_ context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.DescribeLogDirsRequest)
	resp := req.ResponseKind().(*kmsg.DescribeLogDirsResponse)
	if !c.mayCluster(auth.Describe) {
		resp.ErrorCode = kerr.ClusterAuthorizationFailed.Code // Below version 3 there is no place for it.
		return resp, nil
	}
	dir := kmsg.NewDescribeLogDirsResponseDir()
	dir.Dir = h.opts.LogDir
	if h.opts.Space != nil {
		dir.TotalBytes, dir.UsableBytes = h.opts.Space()
	}
	if req.Topics == nil {
		for _, t := range c.image.Topics() {
			dir.Topics = append(dir.Topics, h.logDirTopic(t, nil))
		}
	}
	topics, _ := distinct(req.Topics, func(t *kmsg.DescribeLogDirsRequestTopic) (string, *[]int32) { return t.Topic, &t.Partitions }, itself)
	for _, asked := range topics {
		if t := c.image.Topic(asked.Topic); t != nil {
			dir.Topics = append(dir.Topics, h.logDirTopic(t, asked.Partitions))
		}
	}
	resp.Dirs = append(resp.Dirs, dir)
	return resp, nil
}

// logDirTopic lists the sizes of some partitions of a topic, of all for nil.
func (h *Handler) logDirTopic(t *metadata.Topic, indexes []int32) kmsg.DescribeLogDirsResponseDirTopic {
	out := kmsg.NewDescribeLogDirsResponseDirTopic()
	out.Topic = t.Name
	if indexes == nil {
		for i := range t.Partitions {
			indexes = append(indexes, int32(i))
		}
	}
	for _, i := range indexes {
		if p := h.opts.Partitions.Get(t.Name, i); p != nil {
			part := kmsg.NewDescribeLogDirsResponseDirTopicPartition()
			part.Partition, part.Size = i, p.Size()
			out.Partitions = append(out.Partitions, part)
		}
	}
	return out
}
