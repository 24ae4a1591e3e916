package handler

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/audit"
	"muster/internal/metadata"
	"muster/internal/protocol"
	"muster/internal/store"
)

func createdTopics(c *call, resp kmsg.Response) []change {
	if c.req.(*kmsg.CreateTopicsRequest).ValidateOnly {
		return nil
	}
	var out []audit.Resource
	for _, t := range resp.(*kmsg.CreateTopicsResponse).Topics {
		if t.ErrorCode == 0 {
			out = append(out, audit.Resource{Type: audit.TypeTopic, Name: t.Topic, Detail: partitionCount(t.NumPartitions)})
		}
	}
	return []change{{audit.TopicCreated, out}}
}

func partitionCount(n int32) string {
	if n == 1 {
		return "1 partition"
	}
	return fmt.Sprintf("%d partitions", n)
}

func deletedTopics(_ *call, resp kmsg.Response) []change {
	var out []audit.Resource
	for _, t := range resp.(*kmsg.DeleteTopicsResponse).Topics {
		if t.ErrorCode == 0 && t.Topic != nil {
			out = append(out, audit.Resource{Type: audit.TypeTopic, Name: *t.Topic})
		}
	}
	return []change{{audit.TopicDeleted, out}}
}

func addedPartitions(c *call, resp kmsg.Response) []change {
	req := c.req.(*kmsg.CreatePartitionsRequest)
	if req.ValidateOnly {
		return nil
	}
	counts := map[string]int32{}
	for _, t := range req.Topics {
		counts[t.Topic] = t.Count
	}
	var out []audit.Resource
	for _, t := range resp.(*kmsg.CreatePartitionsResponse).Topics {
		if t.ErrorCode == 0 {
			out = append(out, audit.Resource{Type: audit.TypeTopic, Name: t.Topic, Detail: partitionCount(counts[t.Topic])})
		}
	}
	return []change{{audit.PartitionsAdded, out}}
}

// reassignedPartitions tells which broker leads each partition now.
func reassignedPartitions(c *call, resp kmsg.Response) []change {
	to := map[partitionName]int32{}
	for _, t := range c.req.(*kmsg.AlterPartitionAssignmentsRequest).Topics {
		for _, p := range t.Partitions {
			if len(p.Replicas) > 0 {
				to[partitionName{topic: t.Topic, index: p.Partition}] = p.Replicas[0]
			}
		}
	}
	var out []audit.Resource
	for _, t := range resp.(*kmsg.AlterPartitionAssignmentsResponse).Topics {
		var parts some
		for _, p := range t.Partitions {
			if p.ErrorCode == 0 {
				parts.addf("partition %d to broker %d", p.Partition, to[partitionName{topic: t.Topic, index: p.Partition}])
			}
		}
		if parts.n > 0 {
			out = append(out, audit.Resource{Type: audit.TypeTopic, Name: t.Topic, Detail: parts.String()})
		}
	}
	return []change{{audit.PartitionsReassigned, out}}
}

// deletedRecords tells where each partition begins now.
func deletedRecords(_ *call, resp kmsg.Response) []change {
	var out []audit.Resource
	for _, t := range resp.(*kmsg.DeleteRecordsResponse).Topics {
		var parts some
		for _, p := range t.Partitions {
			if p.ErrorCode == 0 {
				parts.addf("partition %d before %d", p.Partition, p.LowWatermark)
			}
		}
		if parts.n > 0 {
			out = append(out, audit.Resource{Type: audit.TypeTopic, Name: t.Topic, Detail: parts.String()})
		}
	}
	return []change{{audit.RecordsDeleted, out}}
}

// alteredConfigs is about requests that replace all settings.
func alteredConfigs(c *call, resp kmsg.Response) []change {
	req := c.req.(*kmsg.AlterConfigsRequest)
	if req.ValidateOnly {
		return nil
	}
	details := map[resource]string{}
	for _, r := range req.Resources {
		var list some
		for _, s := range r.Configs {
			list.addf("%s", settingDetail(r.ResourceType, s.Name, "=", s.Value))
		}
		details[resource{r.ResourceType, r.ResourceName}] = strings.TrimSuffix("all others as by default; "+list.String(), "; ")
	}
	var out []audit.Resource
	for _, r := range resp.(*kmsg.AlterConfigsResponse).Resources {
		if r.ErrorCode == 0 {
			out = append(out, configResource(r.ResourceType, r.ResourceName, details))
		}
	}
	return []change{{audit.SettingsChanged, out}}
}

func alteredSomeConfigs(c *call, resp kmsg.Response) []change {
	req := c.req.(*kmsg.IncrementalAlterConfigsRequest)
	if req.ValidateOnly {
		return nil
	}
	signs := map[metadata.ConfigOp]string{0: "=", 1: " as by default", 2: "+=", 3: "-="}
	details := map[resource]string{}
	for _, r := range req.Resources {
		var list some
		for _, s := range r.Configs {
			list.addf("%s", settingDetail(r.ResourceType, s.Name, signs[metadata.ConfigOp(s.Op)], s.Value))
		}
		details[resource{r.ResourceType, r.ResourceName}] = list.String()
	}
	var out []audit.Resource
	for _, r := range resp.(*kmsg.IncrementalAlterConfigsResponse).Resources {
		if r.ErrorCode == 0 {
			out = append(out, configResource(r.ResourceType, r.ResourceName, details))
		}
	}
	return []change{{audit.SettingsChanged, out}}
}

// settingDetail words the change of a setting. Of a broker's it says no values: there
// are passwords among them.
func settingDetail(kind kmsg.ConfigResourceType, name, sign string, value *string) string {
	switch {
	case kind == kmsg.ConfigResourceTypeBroker:
		return name
	case value == nil:
		return name + " as by default"
	case !strings.HasSuffix(sign, "="):
		return name + sign
	}
	return name + sign + *value
}

func configResource(kind kmsg.ConfigResourceType, name string, details map[resource]string) audit.Resource {
	out := audit.Resource{Type: strings.ToLower(kind.String()), Name: name, Detail: details[resource{kind, name}]}
	switch kind {
	case kmsg.ConfigResourceTypeTopic:
		out.Type = audit.TypeTopic
	case kmsg.ConfigResourceTypeGroupConfig:
		out.Type = audit.TypeGroup
	case kmsg.ConfigResourceTypeBroker:
		out.Type = audit.TypeBroker
		if name == "" {
			out.Type = audit.TypeCluster
		}
	}
	return out
}

// convertedTopic tells which partition was converted, and when the topic was.
func convertedTopic(c *call, resp kmsg.Response) []change {
	req := c.req.(*kmsg.DescribeTopicPartitionsRequest)
	for _, t := range resp.(*kmsg.DescribeTopicPartitionsResponse).Topics {
		for i := range t.Partitions {
			out := protocol.GetConverting(&t.Partitions[i].UnknownTags)
			if out == nil || !out.Done {
				continue
			}
			for j := range req.Topics {
				ask := protocol.AsksConvert(&req.Topics[j].UnknownTags)
				if ask == nil {
					continue
				}
				detail := map[string]string{
					protocol.ConvertSwitch: fmt.Sprintf("partition %d converted to layout %s", t.Partitions[i].Partition, store.LayoutIndexed),
					protocol.ConvertFinish: fmt.Sprintf("muster.redis.layout=%s", store.LayoutIndexed),
				}[ask.Step]
				if detail != "" {
					return []change{{audit.SettingsChanged, []audit.Resource{{Type: audit.TypeTopic, Name: *t.Topic, Detail: detail}}}}
				}
			}
		}
	}
	return nil
}

// some is the first few of a list that may be long, for one line.
type some struct {
	first []string
	n     int
}

const maxSome = 5

func (s *some) addf(format string, args ...any) {
	if s.n++; s.n <= maxSome {
		s.first = append(s.first, fmt.Sprintf(format, args...))
	}
}

func (s *some) String() string {
	out := strings.Join(s.first, ", ")
	if more := s.n - len(s.first); more > 0 {
		out += fmt.Sprintf(" and %d more", more)
	}
	return out
}
