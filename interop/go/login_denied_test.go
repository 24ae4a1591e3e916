package interop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/IBM/sarama"
	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
)

// What who may not is told, by Kafka's codes.
const (
	topicDenied   = int16(29)
	groupDenied   = int16(30)
	clusterDenied = int16(31)
	txnDenied     = int16(53)
)

const (
	deniedTopic = "login-orders"
	deniedGroup = "login-billing" // a group that exists, with a committed offset
	deniedTxn   = "login-txn"
)

// denial is a request, and the codes of its answer for bob, who has no rights, and for cat,
// who may do everything with the group and the transactional id and nothing with the topic.
type denial struct {
	req      kmsg.Request
	bob, cat []int16
	codes    func(kmsg.Response) []int16
}

// codes makes a function that finds the codes of an answer.
func codes[R kmsg.Response](f func(R) []int16) func(kmsg.Response) []int16 {
	return func(resp kmsg.Response) []int16 { return f(resp.(R)) }
}

// groupDenials are the requests of groups, those of seed 004 and the newer ones.
func groupDenials(id kadm.TopicID) []denial {
	const group, topic = deniedGroup, deniedTopic
	nobody := kmsg.StringPtr("nobody")
	describe := kmsg.NewPtrConsumerGroupDescribeRequest()
	describe.Groups = []string{group}
	find := kmsg.NewPtrFindCoordinatorRequest()
	find.CoordinatorKeys = []string{group}
	join := kmsg.NewPtrJoinGroupRequest()
	join.Group, join.SessionTimeoutMillis, join.ProtocolType = group, 10_000, "consumer"
	join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range"}}
	beat, leave, sync := kmsg.NewPtrHeartbeatRequest(), kmsg.NewPtrLeaveGroupRequest(), kmsg.NewPtrSyncGroupRequest()
	beat.Group, leave.Group, sync.Group = group, group, group
	beat.MemberID, sync.MemberID = *nobody, *nobody
	sync.ProtocolType, sync.Protocol = kmsg.StringPtr("consumer"), kmsg.StringPtr("range")
	leave.Members = []kmsg.LeaveGroupRequestMember{{MemberID: *nobody}}
	consumer := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	consumer.Group, consumer.MemberID, consumer.SubscribedTopicNames, consumer.RebalanceTimeoutMillis = group, *nobody, []string{topic}, 10_000
	consumer.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	groups, remove := kmsg.NewPtrDescribeGroupsRequest(), kmsg.NewPtrDeleteGroupsRequest()
	groups.Groups, remove.Groups = []string{group}, []string{group}
	list := kmsg.NewPtrListGroupsRequest()
	return []denial{
		{find, []int16{groupDenied}, []int16{0}, codes(func(r *kmsg.FindCoordinatorResponse) []int16 { return []int16{r.Coordinators[0].ErrorCode} })},
		{join, []int16{groupDenied}, []int16{kerr.MemberIDRequired.Code}, codes(func(r *kmsg.JoinGroupResponse) []int16 { return []int16{r.ErrorCode} })},
		{sync, []int16{groupDenied}, []int16{kerr.UnknownMemberID.Code}, codes(func(r *kmsg.SyncGroupResponse) []int16 { return []int16{r.ErrorCode} })},
		{beat, []int16{groupDenied}, []int16{kerr.UnknownMemberID.Code}, codes(func(r *kmsg.HeartbeatResponse) []int16 { return []int16{r.ErrorCode} })},
		{leave, []int16{groupDenied}, []int16{0}, codes(func(r *kmsg.LeaveGroupResponse) []int16 { return []int16{r.ErrorCode} })},
		{commitOf(group, topic, id), []int16{groupDenied}, []int16{topicDenied}, codes(func(r *kmsg.OffsetCommitResponse) []int16 {
			return []int16{r.Topics[0].Partitions[0].ErrorCode}
		})},
		{fetchOf(group, topic, id), []int16{groupDenied}, []int16{0, topicDenied}, codes(func(r *kmsg.OffsetFetchResponse) (all []int16) {
			all = append(all, r.Groups[0].ErrorCode)
			for i := range r.Groups[0].Topics {
				all = append(all, r.Groups[0].Topics[i].Partitions[0].ErrorCode)
			}
			return all
		})},
		{groups, []int16{groupDenied}, []int16{0}, codes(func(r *kmsg.DescribeGroupsResponse) []int16 { return []int16{r.Groups[0].ErrorCode} })},
		{list, []int16{0}, []int16{0, 1}, codes(func(r *kmsg.ListGroupsResponse) []int16 {
			return append([]int16{r.ErrorCode}, slices.Repeat([]int16{1}, len(r.Groups))...) // Who may not see a group does not see it.
		})},
		{deleteOf(group, topic), []int16{groupDenied}, []int16{0, topicDenied}, codes(func(r *kmsg.OffsetDeleteResponse) (all []int16) {
			all = append(all, r.ErrorCode)
			for i := range r.Topics {
				all = append(all, r.Topics[i].Partitions[0].ErrorCode)
			}
			return all
		})},
		{consumer, []int16{groupDenied}, []int16{topicDenied}, codes(func(r *kmsg.ConsumerGroupHeartbeatResponse) []int16 { return []int16{r.ErrorCode} })},
		{describe, []int16{groupDenied}, []int16{kerr.GroupIDNotFound.Code}, codes(func(r *kmsg.ConsumerGroupDescribeResponse) []int16 {
			return []int16{r.Groups[0].ErrorCode}
		})},
		// The last, since it may go well.
		{remove, []int16{groupDenied}, []int16{0}, codes(func(r *kmsg.DeleteGroupsResponse) []int16 { return []int16{r.Groups[0].ErrorCode} })},
	}
}

func commitOf(group, topic string, id kadm.TopicID) kmsg.Request {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation = group, -1
	partition := kmsg.NewOffsetCommitRequestTopicPartition()
	req.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: topic, TopicID: id, Partitions: []kmsg.OffsetCommitRequestTopicPartition{partition}}}
	return req
}

func fetchOf(group, topic string, id kadm.TopicID) kmsg.Request {
	req := kmsg.NewPtrOffsetFetchRequest()
	of := kmsg.NewOffsetFetchRequestGroup()
	of.Group, of.Topics = group, []kmsg.OffsetFetchRequestGroupTopic{{Topic: topic, TopicID: id, Partitions: []int32{0}}}
	req.Groups = append(req.Groups, of)
	return req
}

func deleteOf(group, topic string) kmsg.Request {
	req := kmsg.NewPtrOffsetDeleteRequest()
	req.Group = group
	req.Topics = []kmsg.OffsetDeleteRequestTopic{{Topic: topic, Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{}}}}
	return req
}

// otherDenials are requests of transactions, and of those who manage a cluster.
func otherDenials() []denial {
	const group, topic, txn = deniedGroup, deniedTopic, deniedTxn
	find := kmsg.NewPtrFindCoordinatorRequest()
	find.CoordinatorType, find.CoordinatorKeys = 1, []string{txn}
	own, plain := kmsg.NewPtrInitProducerIDRequest(), kmsg.NewPtrInitProducerIDRequest()
	own.TransactionalID, own.TransactionTimeoutMillis = kmsg.StringPtr(txn), 10_000
	offsets, ends := kmsg.NewPtrAddOffsetsToTxnRequest(), kmsg.NewPtrEndTxnRequest()
	offsets.TransactionalID, ends.TransactionalID, offsets.Group = txn, txn, group
	commit := kmsg.NewPtrTxnOffsetCommitRequest()
	commit.TransactionalID, commit.Group = txn, group
	commit.Topics = []kmsg.TxnOffsetCommitRequestTopic{{Topic: topic, Partitions: []kmsg.TxnOffsetCommitRequestTopicPartition{kmsg.NewTxnOffsetCommitRequestTopicPartition()}}}
	rules, users := kmsg.NewPtrDescribeACLsRequest(), kmsg.NewPtrDescribeUserSCRAMCredentialsRequest()
	rules.ResourceType, rules.ResourcePatternType, rules.Operation, rules.PermissionType = kmsg.ACLResourceTypeAny, kmsg.ACLResourcePatternTypeAny, kmsg.ACLOperationAny, kmsg.ACLPermissionTypeAny
	quotas := kmsg.NewPtrDescribeClientQuotasRequest()
	cluster := []int16{clusterDenied}
	return []denial{
		{find, []int16{txnDenied}, []int16{0}, codes(func(r *kmsg.FindCoordinatorResponse) []int16 { return []int16{r.Coordinators[0].ErrorCode} })},
		{own, []int16{txnDenied}, []int16{0}, codes(func(r *kmsg.InitProducerIDResponse) []int16 { return []int16{r.ErrorCode} })},
		{plain, cluster, cluster, codes(func(r *kmsg.InitProducerIDResponse) []int16 { return []int16{r.ErrorCode} })},
		{offsets, []int16{txnDenied}, nil, codes(func(r *kmsg.AddOffsetsToTxnResponse) []int16 { return []int16{r.ErrorCode} })},
		{commit, []int16{txnDenied}, []int16{topicDenied}, codes(func(r *kmsg.TxnOffsetCommitResponse) []int16 { return []int16{r.Topics[0].Partitions[0].ErrorCode} })},
		{ends, []int16{txnDenied}, nil, codes(func(r *kmsg.EndTxnResponse) []int16 { return []int16{r.ErrorCode} })},
		{rules, cluster, cluster, codes(func(r *kmsg.DescribeACLsResponse) []int16 { return []int16{r.ErrorCode} })},
		{users, cluster, cluster, codes(func(r *kmsg.DescribeUserSCRAMCredentialsResponse) []int16 { return []int16{r.ErrorCode} })},
		{quotas, cluster, cluster, codes(func(r *kmsg.DescribeClientQuotasResponse) []int16 { return []int16{r.ErrorCode} })},
	}
}

func TestWhoMayNotIsToldSoByEachGroupAPI(t *testing.T) {
	onlyOn(t, "disk") // Where records are kept says nothing about who may what.
	s := newAnnsSite(t)
	for _, user := range []string{"bob", "cat"} {
		s.setPassword(user, user+"s")
	}
	s.allow("cat", kadm.NewACLs().Groups(deniedGroup).Operations(kadm.OpAll))
	s.allow("cat", kadm.NewACLs().TransactionalIDs(deniedTxn).Operations(kadm.OpAll))
	s.topics(deniedTopic)
	var offsets kadm.Offsets
	offsets.Add(kadm.Offset{Topic: deniedTopic, Partition: 0, At: 7, LeaderEpoch: -1})
	if _, err := s.admin.CommitOffsets(t.Context(), deniedGroup, offsets); err != nil {
		t.Fatal(err)
	}
	requests := append(otherDenials(), groupDenials(s.topicID(deniedTopic))...)
	bob, cat := s.as("bob"), s.as("cat")
	for _, d := range requests {
		s.wantCodes(bob, "bob", d.bob, d)
	}
	committed, err := s.admin.FetchOffsets(t.Context(), deniedGroup)
	if o, ok := committed.Lookup(deniedTopic, 0); err != nil || !ok || o.At != 7 {
		t.Errorf("what was denied has changed the group: %v, %v", committed, err)
	}
	for _, d := range requests {
		if d.cat != nil {
			s.wantCodes(cat, "cat", d.cat, d)
		}
	}
}

// topicID returns the id of a topic, by which the newest requests name it.
func (s *site) topicID(topic string) kadm.TopicID {
	s.t.Helper()
	listed, err := s.admin.ListTopics(s.t.Context(), topic)
	must(s.t, err)
	return listed[topic].ID
}

// as returns a client of a user.
func (s *site) as(user string) *kgo.Client {
	s.t.Helper()
	a := s.accountOf(user)
	secure, err := tlsOf(a.trust, "")
	must(s.t, err)
	return connect(s.t, a.addr, kgo.SASL(franzMechanism(a)), kgo.DialTLSConfig(secure))
}

// accountOf is the account of a user whose password is their name with an s.
func (s *site) accountOf(user string) *account {
	a := s.account(way{underTLS, "SCRAM-SHA-512"})
	a.user, a.password = user, newSecret(user+"s")
	return a
}

// wantCodes sends a request to the broker itself: the client would first ask for a coordinator.
func (s *site) wantCodes(cl *kgo.Client, user string, want []int16, d denial) {
	s.t.Helper()
	resp, err := cl.Broker(1).Request(s.t.Context(), d.req)
	if err != nil {
		s.t.Errorf("%s, %s: %v", user, kmsg.NameForKey(d.req.Key()), err)
		return
	}
	if got := d.codes(resp); !slices.Equal(got, want) {
		s.t.Errorf("%s, %s: %v, want %v: %+v", user, kmsg.NameForKey(d.req.Key()), got, want, resp)
	}
}

// codeOf returns the code of Kafka in a client's error, 0 if there is none.
func codeOf(err error) int16 {
	var franz *kerr.Error
	var sara sarama.KError
	var lib kafka.Error
	switch {
	case errors.As(err, &franz):
		return franz.Code
	case errors.As(err, &sara):
		return int16(sara)
	case errors.As(err, &lib):
		return int16(lib.Code())
	}
	return 0
}

func TestClientsSayWhatTheyMayNot(t *testing.T) {
	onlyOn(t, "disk")
	s := newAnnsSite(t)
	for _, user := range []string{"bob", "dan", "eve"} {
		s.setPassword(user, user+"s")
	}
	// Bob may write elsewhere; dan may read the topic, but in no group; eve may see it, and write nowhere.
	s.allow("bob", kadm.NewACLs().Topics("elsewhere").Operations(kadm.OpWrite))
	s.allow("dan", kadm.NewACLs().Topics(deniedTopic).Operations(kadm.OpRead))
	s.allow("eve", kadm.NewACLs().Topics(deniedTopic).Operations(kadm.OpDescribe))
	s.topics(deniedTopic)
	ctx, cancel := context.WithTimeout(t.Context(), clientTimeout)
	defer cancel()
	var running sync.WaitGroup
	for _, c := range []*loginClient{&franzLogin, &saramaLogin, &librdkafkaLogin} {
		write := func(user string) error {
			sent := 0
			return c.produce(ctx, s.accountOf(user), deniedTopic, func() (string, bool) {
				sent++
				return "forged", sent <= 1
			})
		}
		read := func(user string) error {
			return c.consume(ctx, s.accountOf(user), deniedTopic, deniedGroup, func(string) bool { return true })
		}
		for what, try := range map[string]struct {
			as   string
			want int16
			do   func(user string) error
		}{
			"writing to a topic":       {"bob", topicDenied, write},
			"reading in a group":       {"dan", groupDenied, read},
			"writing without a repeat": {"eve", clusterDenied, write},
		} {
			running.Go(func() {
				if err := try.do(try.as); codeOf(err) != try.want {
					t.Errorf("%s, %s: %v, want code %d", c.name, what, err, try.want)
				}
			})
		}
	}
	running.Wait()
	assert.NoError(t, s.unwritten(ctx))
}

// unwritten says whether someone has written to the topic.
func (s *site) unwritten(ctx context.Context) error {
	ends, err := s.admin.ListEndOffsets(ctx, deniedTopic)
	if o, ok := ends.Lookup(deniedTopic, 0); err != nil || !ok || o.Offset != 0 {
		return fmt.Errorf("the topic ends at %v, %w", o, err)
	}
	return nil
}
