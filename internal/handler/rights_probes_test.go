package handler_test

import (
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
)

// names are the resources that a request of the walk is about.
type names struct {
	topic, group, txn string
	id                [16]byte // of the topic
}

// of returns the name of a resource type.
func (n names) of(t auth.ResourceType) string {
	switch t {
	case auth.Topic:
		return n.topic
	case auth.Group:
		return n.group
	case auth.TransactionalID:
		return n.txn
	}
	return auth.ClusterName
}

// probe is a request of an API key, and which lines of the table of rights it needs.
type probe struct {
	key      int16
	what     string
	from, to int16 // versions; all from the first on, if the last is 0
	needs    []int // lines of auth.Needs
	edit     func(t testing.TB, n names, req kmsg.Request)
	setup    func(w *guardedWorld, n names)
	omits    []int // lines of needs whose lack leaves something out in place of an error
	// shows says whether the answer has what is left out otherwise; nil if it is a name.
	shows func(resp kmsg.Response) bool
	fresh bool  // the topic must not be there
	later bool  // it is created after the answer
	idsIn int16 // the first version that names topics by id, 0 for none
	spare int16 // what the parts are told that were not denied themselves
}

// fill writes names into a request, wherever a field is for them.
func fill(v reflect.Value, n names) {
	text := map[string]string{
		"Topic": n.topic, "TopicNames": n.topic, "SubscribedTopicNames": n.topic,
		"Group": n.group, "Groups": n.group, "GroupID": n.group, "GroupIDs": n.group, "CoordinatorKey": n.group, "CoordinatorKeys": n.group,
		"TransactionalID": n.txn, "TransactionalIDs": n.txn,
	}
	for i := range v.NumField() {
		f, name := v.Field(i), v.Type().Field(i).Name
		known, ok := text[name]
		switch {
		case name == "UnknownTags" || name == "ReplicaAssignment" || name == "Assignment" || name == "ForgottenTopics" || name == "Cursor":
		case f.Kind() == reflect.String && ok:
			f.SetString(known)
		case f.Kind() == reflect.Pointer && f.Type().Elem().Kind() == reflect.String && name == "Topic":
			f.Set(reflect.ValueOf(&n.topic))
		case f.Kind() == reflect.Array && name == "TopicID":
			f.Set(reflect.ValueOf(n.id))
		case f.Kind() != reflect.Slice:
		case f.Type().Elem().Kind() == reflect.String && ok:
			f.Set(reflect.ValueOf([]string{known}))
		case f.Type().Elem().Kind() == reflect.Int32 && name == "Partitions":
			f.Set(reflect.ValueOf([]int32{0}))
		case f.Type().Elem().Kind() == reflect.Struct:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
			if d, ok := f.Index(0).Addr().Interface().(interface{ Default() }); ok {
				d.Default()
			}
			fill(f.Index(0), n)
		}
	}
}

// request makes the probe's request.
func (p *probe) request(t testing.TB, version int16, n names) kmsg.Request {
	req := kmsg.RequestForKey(p.key)
	fill(reflect.ValueOf(req).Elem(), n)
	if p.edit != nil {
		p.edit(t, n, req)
	}
	req.SetVersion(version)
	return req
}

// on makes the edit of a request of one type.
func on[R kmsg.Request](edit func(n names, req R)) func(testing.TB, names, kmsg.Request) {
	return func(_ testing.TB, n names, req kmsg.Request) { edit(n, req.(R)) }
}

// probes covers every key and version that is served.
func probes() []probe {
	all := []probe{{key: 17}, {key: 18}, {key: 36}}
	all = append(all, recordProbes()...)
	all = append(all, topicProbes()...)
	all = append(all, groupProbes()...)
	all = append(all, transactionProbes()...)
	return append(all, adminProbes()...)
}

func recordProbes() []probe {
	return []probe{
		{key: 0, what: "plain", from: 3, needs: []int{1}, idsIn: 13, edit: func(t testing.TB, _ names, req kmsg.Request) {
			r := req.(*kmsg.ProduceRequest)
			r.Acks, r.Topics[0].Partitions[0].Records = -1, batch(t, 1)
		}},
		{key: 0, what: "transactional", from: 3, needs: []int{0, 1}, idsIn: 13, edit: func(t testing.TB, n names, req kmsg.Request) {
			r := req.(*kmsg.ProduceRequest)
			r.Acks, r.TransactionID, r.Topics[0].Partitions[0].Records = -1, &n.txn, txnBatch(t, 1, 0, 0)
		}},
		{key: 1, needs: []int{0}, idsIn: 13, edit: on(func(_ names, r *kmsg.FetchRequest) {
			r.MaxWaitMillis, r.MaxBytes, r.Topics[0].Partitions[0].PartitionMaxBytes = 0, 1<<20, 1<<20
		})},
		{key: 2, needs: []int{0}, edit: on(func(_ names, r *kmsg.ListOffsetsRequest) { r.Topics[0].Partitions[0].Timestamp = -1 })},
		{key: 21, needs: []int{0}},
		{key: 78, needs: []int{0, 1}, idsIn: 1, edit: on(func(n names, r *kmsg.ShareFetchRequest) {
			r.GroupID, r.MemberID, r.MaxBytes, r.MaxRecords = &n.group, &n.group, 1<<20, 1
			r.Topics[0].Partitions[0].AcknowledgementBatches, r.ForgottenTopicsData = nil, nil
		})},
		{key: 79, needs: []int{0, 1}, idsIn: 1, setup: func(w *guardedWorld, n names) {
			req := kmsg.NewPtrShareFetchRequest() // In a session, which is that of who asks.
			req.Version, req.GroupID, req.MemberID = 1, &n.group, &n.group
			w.as(auth.User("user"+n.group[5:]), req)
		}, edit: on(func(n names, r *kmsg.ShareAcknowledgeRequest) {
			r.GroupID, r.MemberID, r.ShareSessionEpoch = &n.group, &n.group, 1
		})},
		{key: 23, needs: []int{0}},
		{key: 61, needs: []int{0}},
		{key: 22, what: "with a transactional id", needs: []int{0}, edit: on(func(n names, r *kmsg.InitProducerIDRequest) {
			r.TransactionalID, r.TransactionTimeoutMillis = &n.txn, 1000
		})},
		{key: 22, what: "without one", needs: []int{1}, edit: on(func(_ names, r *kmsg.InitProducerIDRequest) { r.TransactionalID = nil })},
	}
}

func topicProbes() []probe {
	byName := on(func(_ names, r *kmsg.MetadataRequest) {
		r.Topics[0].TopicID, r.AllowAutoTopicCreation = [16]byte{}, true
	})
	create := on(func(_ names, r *kmsg.CreateTopicsRequest) {
		r.Topics[0].Configs, r.Topics[0].NumPartitions, r.Topics[0].ReplicationFactor = nil, 1, 1
	})
	return []probe{
		{key: 3, what: "by name", needs: []int{0}, edit: byName},
		{key: 3, what: "creating", needs: []int{0, 1}, fresh: true, edit: byName},
		{key: 3, what: "all", from: 1, needs: []int{0}, omits: []int{0}, edit: on(func(_ names, r *kmsg.MetadataRequest) { r.Topics = nil })},
		{key: 3, what: "by id", from: 12, needs: []int{0}, idsIn: 12, edit: on(func(_ names, r *kmsg.MetadataRequest) { r.Topics[0].Topic = nil })},
		{key: 19, to: 4, needs: []int{0}, fresh: true, edit: create},
		{key: 19, what: "with settings", from: 5, needs: []int{0, 1}, fresh: true, edit: create, shows: func(resp kmsg.Response) bool {
			t := resp.(*kmsg.CreateTopicsResponse).Topics[0]
			return t.ConfigErrorCode == 0 && len(t.Configs) > 0 && t.NumPartitions == 1
		}},
		{key: 20, what: "by name", needs: []int{1}, edit: on(func(_ names, r *kmsg.DeleteTopicsRequest) { r.Topics[0].TopicID = [16]byte{} })},
		{key: 20, what: "by id", from: 6, needs: []int{0, 1}, idsIn: 6, edit: on(func(_ names, r *kmsg.DeleteTopicsRequest) { r.Topics[0].Topic = nil })},
		{key: 37, needs: []int{0}, edit: on(func(_ names, r *kmsg.CreatePartitionsRequest) { r.Topics[0].Count = 2 })},
		{key: 75, what: "by name", needs: []int{0}, edit: on(func(_ names, r *kmsg.DescribeTopicPartitionsRequest) { r.ResponsePartitionLimit = 10 })},
		{key: 75, what: "all", needs: []int{0}, omits: []int{0}, edit: on(func(_ names, r *kmsg.DescribeTopicPartitionsRequest) {
			r.Topics, r.ResponsePartitionLimit = nil, 10
		})},
	}
}

func groupProbes() []probe {
	commits := func(w *guardedWorld, n names) { w.commit(n) }
	joins := func(w *guardedWorld, n names) { w.joinNew(n) }
	find := func(kind int8) func(testing.TB, names, kmsg.Request) {
		return on(func(n names, r *kmsg.FindCoordinatorRequest) {
			if r.CoordinatorType = kind; kind == 1 {
				r.CoordinatorKey, r.CoordinatorKeys = n.txn, []string{n.txn}
			}
		})
	}
	return []probe{
		{key: 8, needs: []int{0, 1}, idsIn: 10, edit: on(func(_ names, r *kmsg.OffsetCommitRequest) { r.Generation = -1 })},
		{key: 9, what: "by name", needs: []int{0, 1}, idsIn: 10, setup: commits},
		{key: 9, what: "all", from: 2, needs: []int{0, 1}, omits: []int{1}, idsIn: 10, setup: commits, edit: on(func(_ names, r *kmsg.OffsetFetchRequest) {
			r.Topics, r.Groups[0].Topics = nil, nil
		}), shows: showsOffsets},
		{key: 10, what: "group", needs: []int{0}, edit: find(0)},
		{key: 10, what: "transactional id", from: 1, needs: []int{1}, edit: find(1)},
		{key: 10, what: "share group", from: 6, needs: []int{2}, edit: find(2)},
		{key: 11, needs: []int{0}, edit: on(func(_ names, r *kmsg.JoinGroupRequest) {
			r.ProtocolType, r.SessionTimeoutMillis, r.RebalanceTimeoutMillis, r.Protocols[0].Name = "consumer", 10_000, 10_000, "range"
		})},
		{key: 12, needs: []int{0}}, {key: 13, needs: []int{0}},
		{key: 14, needs: []int{0}, edit: on(func(_ names, r *kmsg.SyncGroupRequest) {
			name, kind := "range", "consumer"
			r.Protocol, r.ProtocolType = &name, &kind
		})},
		{key: 15, needs: []int{0}, setup: commits},
		{key: 16, needs: []int{0}, setup: commits, edit: on(func(_ names, r *kmsg.ListGroupsRequest) {})},
		{key: 42, needs: []int{0}, setup: commits},
		{key: 47, needs: []int{0, 1}, setup: commits},
		{key: 68, needs: []int{0, 1}, edit: on(func(_ names, r *kmsg.ConsumerGroupHeartbeatRequest) {
			r.MemberID, r.RebalanceTimeoutMillis, r.Topics = "m", 1000, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
		})},
		{key: 69, needs: []int{0, 1}, setup: joins},
		{key: 76, needs: []int{0, 1}, edit: on(func(_ names, r *kmsg.ShareGroupHeartbeatRequest) { r.MemberID = "m" })},
		{key: 77, needs: []int{0, 1}, setup: func(w *guardedWorld, n names) { w.joinShare(n) }},
		{key: 88, what: "with a source topic", needs: []int{0, 1}, edit: on(func(n names, r *kmsg.StreamsGroupHeartbeatRequest) {
			joinsStreams(r, kmsg.StreamsGroupHeartbeatRequestTopologySubtopology{SourceTopics: []string{n.topic}})
		})},
		{key: 88, what: "with a topic to create", needs: []int{0, 1, 2}, omits: []int{2}, fresh: true, later: true, edit: on(func(n names, r *kmsg.StreamsGroupHeartbeatRequest) {
			joinsStreams(r, kmsg.StreamsGroupHeartbeatRequestTopologySubtopology{RepartitionSourceTopics: []kmsg.TopicInfo{{Topic: n.topic, NumPartitions: 1}}})
		}), shows: func(resp kmsg.Response) bool {
			r := resp.(*kmsg.StreamsGroupHeartbeatResponse)
			return r.ErrorCode == 0 && len(r.Status) > 0 && !strings.Contains(r.Status[0].StatusDetail, "Unauthorized")
		}},
		{key: 89, needs: []int{0, 1}, setup: func(w *guardedWorld, n names) { w.joinStreams(n) }},
		{key: 90, needs: []int{0, 1}},
		{key: 91, needs: []int{0, 1}},
		{key: 92, needs: []int{0, 1}, setup: func(w *guardedWorld, n names) { w.leaveShare(n) }},
	}
}

// joinsStreams makes a request that of a member which joins with subtopologies.
func joinsStreams(r *kmsg.StreamsGroupHeartbeatRequest, subtopologies ...kmsg.StreamsGroupHeartbeatRequestTopologySubtopology) {
	process, none := "p", []kmsg.TaskIDs{}
	r.MemberID, r.MemberEpoch, r.ProcessID, r.RebalanceTimeoutMillis = "m", 0, &process, 1000
	r.ActiveTasks, r.StandbyTasks, r.WarmupTasks = none, none, none
	for i := range subtopologies {
		subtopologies[i].SubtopologyID = strconv.Itoa(i)
	}
	r.Topology = &kmsg.StreamsGroupHeartbeatRequestTopology{Epoch: 1, Subtopologies: subtopologies}
}

// showsOffsets says whether an answer has offsets; from version 10 on it has no name.
func showsOffsets(resp kmsg.Response) bool {
	r := resp.(*kmsg.OffsetFetchResponse)
	return len(r.Topics) > 0 || len(r.Groups) > 0 && len(r.Groups[0].Topics) > 0
}

func transactionProbes() []probe {
	begins := func(w *guardedWorld, n names) { w.begin(n) }
	return []probe{
		{key: 24, what: "of a client", to: 3, needs: []int{0, 1}, spare: 55, setup: begins, edit: on(func(_ names, r *kmsg.AddPartitionsToTxnRequest) {
			r.Topics = append(r.Topics, kmsg.AddPartitionsToTxnRequestTopic{Topic: spareTopic, Partitions: []int32{0}})
		})},
		{key: 24, what: "of a broker", from: 4, needs: []int{2}},
		{key: 25, needs: []int{0, 1}},
		{key: 26, needs: []int{0}},
		{key: 27, needs: []int{0}},
		{key: 28, needs: []int{0, 1, 2}},
		{key: 65, needs: []int{0, 1}, setup: begins},
		{key: 66, needs: []int{0}, setup: begins},
	}
}

func adminProbes() []probe {
	return []probe{
		{key: 32, needs: []int{0, 1, 2}, edit: on(func(n names, r *kmsg.DescribeConfigsRequest) {
			r.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: 2, ResourceName: n.topic}, {ResourceType: 32, ResourceName: n.group}, {ResourceType: 4, ResourceName: "1"}}
		})},
		{key: 33, needs: []int{0, 1, 2}, edit: on(func(n names, r *kmsg.AlterConfigsRequest) {
			r.Resources = []kmsg.AlterConfigsRequestResource{{ResourceType: 2, ResourceName: n.topic}, {ResourceType: 32, ResourceName: n.group}, {ResourceType: 4, ResourceName: "1"}}
		})},
		{key: 44, needs: []int{0, 1, 2}, edit: on(func(n names, r *kmsg.IncrementalAlterConfigsRequest) {
			r.Resources = []kmsg.IncrementalAlterConfigsRequestResource{{ResourceType: 2, ResourceName: n.topic}, {ResourceType: 32, ResourceName: n.group}, {ResourceType: 4, ResourceName: "1"}}
		})},
		{key: 35, to: 2, needs: []int{0}, omits: []int{0}, shows: func(resp kmsg.Response) bool { return len(resp.(*kmsg.DescribeLogDirsResponse).Dirs) > 0 }},
		{key: 35, from: 3, needs: []int{0}},
		{key: 29, needs: []int{0}}, {key: 30, needs: []int{0}}, {key: 31, needs: []int{0}},
		{key: 43, needs: []int{0}},
		{key: 34, needs: []int{0}}, {key: 45, needs: []int{0}}, {key: 55, needs: []int{0}}, {key: 57, needs: []int{0}},
		{key: 46, needs: []int{0}},
		{key: 48, needs: []int{0}}, {key: 49, needs: []int{0}}, {key: 50, needs: []int{0}}, {key: 51, needs: []int{0}},
		{key: 60, needs: []int{0}, edit: on(func(_ names, r *kmsg.DescribeClusterRequest) { r.IncludeClusterAuthorizedOperations = true }),
			shows: func(resp kmsg.Response) bool {
				return resp.(*kmsg.DescribeClusterResponse).ClusterAuthorizedOperations != 0
			}},
		{key: 74, needs: []int{0}},
	}
}
