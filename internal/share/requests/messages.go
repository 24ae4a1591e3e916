package requests

import "github.com/twmb/franz-go/pkg/kmsg"

var (
	initialized = shape[kmsg.InitializeShareGroupStateRequestTopic, kmsg.InitializeShareGroupStateRequestTopicPartition]{
		func(t *kmsg.InitializeShareGroupStateRequestTopic) *[16]byte { return &t.TopicID },
		func(t *kmsg.InitializeShareGroupStateRequestTopic) *[]kmsg.InitializeShareGroupStateRequestTopicPartition {
			return &t.Partitions
		},
		func(p *kmsg.InitializeShareGroupStateRequestTopicPartition) *int32 { return &p.Partition },
	}
	initializedAnswer = answer[kmsg.InitializeShareGroupStateResponseTopic, kmsg.InitializeShareGroupStateResponseTopicPartition]{
		shape: shape[kmsg.InitializeShareGroupStateResponseTopic, kmsg.InitializeShareGroupStateResponseTopicPartition]{
			func(t *kmsg.InitializeShareGroupStateResponseTopic) *[16]byte { return &t.TopicID },
			func(t *kmsg.InitializeShareGroupStateResponseTopic) *[]kmsg.InitializeShareGroupStateResponseTopicPartition {
				return &t.Partitions
			},
			func(p *kmsg.InitializeShareGroupStateResponseTopicPartition) *int32 { return &p.Partition },
		},
		code:  func(p *kmsg.InitializeShareGroupStateResponseTopicPartition) *int16 { return &p.ErrorCode },
		fresh: kmsg.NewInitializeShareGroupStateResponseTopicPartition,
	}
	read = shape[kmsg.ReadShareGroupStateRequestTopic, kmsg.ReadShareGroupStateRequestTopicPartition]{
		func(t *kmsg.ReadShareGroupStateRequestTopic) *[16]byte { return &t.TopicID },
		func(t *kmsg.ReadShareGroupStateRequestTopic) *[]kmsg.ReadShareGroupStateRequestTopicPartition {
			return &t.Partitions
		},
		func(p *kmsg.ReadShareGroupStateRequestTopicPartition) *int32 { return &p.Partition },
	}
	readAnswer = answer[kmsg.ReadShareGroupStateResponseTopic, kmsg.ReadShareGroupStateResponseTopicPartition]{
		shape: shape[kmsg.ReadShareGroupStateResponseTopic, kmsg.ReadShareGroupStateResponseTopicPartition]{
			func(t *kmsg.ReadShareGroupStateResponseTopic) *[16]byte { return &t.TopicID },
			func(t *kmsg.ReadShareGroupStateResponseTopic) *[]kmsg.ReadShareGroupStateResponseTopicPartition {
				return &t.Partitions
			},
			func(p *kmsg.ReadShareGroupStateResponseTopicPartition) *int32 { return &p.Partition },
		},
		code:  func(p *kmsg.ReadShareGroupStateResponseTopicPartition) *int16 { return &p.ErrorCode },
		fresh: kmsg.NewReadShareGroupStateResponseTopicPartition,
	}
	written = shape[kmsg.WriteShareGroupStateRequestTopic, kmsg.WriteShareGroupStateRequestTopicPartition]{
		func(t *kmsg.WriteShareGroupStateRequestTopic) *[16]byte { return &t.TopicID },
		func(t *kmsg.WriteShareGroupStateRequestTopic) *[]kmsg.WriteShareGroupStateRequestTopicPartition {
			return &t.Partitions
		},
		func(p *kmsg.WriteShareGroupStateRequestTopicPartition) *int32 { return &p.Partition },
	}
	writtenAnswer = answer[kmsg.WriteShareGroupStateResponseTopic, kmsg.WriteShareGroupStateResponseTopicPartition]{
		shape: shape[kmsg.WriteShareGroupStateResponseTopic, kmsg.WriteShareGroupStateResponseTopicPartition]{
			func(t *kmsg.WriteShareGroupStateResponseTopic) *[16]byte { return &t.TopicID },
			func(t *kmsg.WriteShareGroupStateResponseTopic) *[]kmsg.WriteShareGroupStateResponseTopicPartition {
				return &t.Partitions
			},
			func(p *kmsg.WriteShareGroupStateResponseTopicPartition) *int32 { return &p.Partition },
		},
		code:  func(p *kmsg.WriteShareGroupStateResponseTopicPartition) *int16 { return &p.ErrorCode },
		fresh: kmsg.NewWriteShareGroupStateResponseTopicPartition,
	}
	deleted = shape[kmsg.DeleteShareGroupStateRequestTopic, kmsg.DeleteShareGroupStateRequestTopicPartition]{
		func(t *kmsg.DeleteShareGroupStateRequestTopic) *[16]byte { return &t.TopicID },
		func(t *kmsg.DeleteShareGroupStateRequestTopic) *[]kmsg.DeleteShareGroupStateRequestTopicPartition {
			return &t.Partitions
		},
		func(p *kmsg.DeleteShareGroupStateRequestTopicPartition) *int32 { return &p.Partition },
	}
	deletedAnswer = answer[kmsg.DeleteShareGroupStateResponseTopic, kmsg.DeleteShareGroupStateResponseTopicPartition]{
		shape: shape[kmsg.DeleteShareGroupStateResponseTopic, kmsg.DeleteShareGroupStateResponseTopicPartition]{
			func(t *kmsg.DeleteShareGroupStateResponseTopic) *[16]byte { return &t.TopicID },
			func(t *kmsg.DeleteShareGroupStateResponseTopic) *[]kmsg.DeleteShareGroupStateResponseTopicPartition {
				return &t.Partitions
			},
			func(p *kmsg.DeleteShareGroupStateResponseTopicPartition) *int32 { return &p.Partition },
		},
		code:  func(p *kmsg.DeleteShareGroupStateResponseTopicPartition) *int16 { return &p.ErrorCode },
		fresh: kmsg.NewDeleteShareGroupStateResponseTopicPartition,
	}
	summarized = shape[kmsg.ReadShareGroupStateSummaryRequestTopic, kmsg.ReadShareGroupStateSummaryRequestTopicPartition]{
		func(t *kmsg.ReadShareGroupStateSummaryRequestTopic) *[16]byte { return &t.TopicID },
		func(t *kmsg.ReadShareGroupStateSummaryRequestTopic) *[]kmsg.ReadShareGroupStateSummaryRequestTopicPartition {
			return &t.Partitions
		},
		func(p *kmsg.ReadShareGroupStateSummaryRequestTopicPartition) *int32 { return &p.Partition },
	}
	summarizedAnswer = answer[kmsg.ReadShareGroupStateSummaryResponseTopic, kmsg.ReadShareGroupStateSummaryResponseTopicPartition]{
		shape: shape[kmsg.ReadShareGroupStateSummaryResponseTopic, kmsg.ReadShareGroupStateSummaryResponseTopicPartition]{
			func(t *kmsg.ReadShareGroupStateSummaryResponseTopic) *[16]byte { return &t.TopicID },
			func(t *kmsg.ReadShareGroupStateSummaryResponseTopic) *[]kmsg.ReadShareGroupStateSummaryResponseTopicPartition {
				return &t.Partitions
			},
			func(p *kmsg.ReadShareGroupStateSummaryResponseTopicPartition) *int32 { return &p.Partition },
		},
		code:  func(p *kmsg.ReadShareGroupStateSummaryResponseTopicPartition) *int16 { return &p.ErrorCode },
		fresh: kmsg.NewReadShareGroupStateSummaryResponseTopicPartition,
	}
)
