package act

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/audit"
	"muster/internal/auth"
	"muster/internal/handler"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/watch/groupview"
	"muster/internal/web/problem"
)

// doing returns acts of broker 1, of whose topic orders it leads partition 1 of 3, and which
// answer by a function.
func doing(t *testing.T, do func(kmsg.Request) (Answer, error)) (*Acts, *[]audit.Entry) {
	t.Helper()
	edit := metadata.NewImage(&config.Broker{}, metadata.Broker{ID: 1}, metadata.Broker{ID: 2}).Edit()
	edit.PutTopic(metadata.Topic{Name: "orders", ID: metadata.TopicID{1}, Partitions: []metadata.Partition{{Leader: 2}, {Leader: 1}, {Leader: 2}}})
	image, told := edit.Image(), new([]audit.Entry)
	return New(Options{
		Do:    func(_ context.Context, _ Asker, req kmsg.Request) (Answer, error) { return do(req) },
		Image: func() *metadata.Image { return image }, Node: func() int32 { return 1 }, Sees: func(auth.Request) bool { return true },
		Audit: func(e audit.Entry) { *told = append(*told, e) }, GroupError: func(_ string, err error) error { return err }, Logger: slog.New(slog.DiscardHandler),
	}), told
}

func deleted(code int16) kmsg.Response {
	return &kmsg.DeleteGroupsResponse{Groups: []kmsg.DeleteGroupsResponseGroup{{ErrorCode: code}}}
}

// refusal is what an act was refused with.
func refusal(t *testing.T, err error) *problem.Refused {
	t.Helper()
	var r *problem.Refused
	assert.MustTrue(t, errors.As(err, &r), "it ends with %v", err)
	return r
}

// Who exceeds a quota is not let through until they have waited, for this kind of act alone.
func TestWhoExceedsAQuotaWaits(t *testing.T) {
	asked := 0
	a, _ := doing(t, func(req kmsg.Request) (Answer, error) {
		asked++
		if _, ok := req.(*kmsg.DeleteTopicsRequest); ok {
			return Answer{Response: &kmsg.DeleteTopicsResponse{Topics: make([]kmsg.DeleteTopicsResponseTopic, 1)}}, nil
		}
		return Answer{Response: deleted(kerr.ThrottlingQuotaExceeded.Code), Wait: time.Hour}, nil
	})
	ann, bob := Asker{Principal: "User:ann"}, Asker{Principal: "User:bob"}
	if r := refusal(t, a.DeleteGroup(t.Context(), ann, "g")); r.Wait != time.Hour || asked != 1 {
		t.Errorf("at first: %+v", r)
	}
	if r := refusal(t, a.DeleteGroup(t.Context(), ann, "g")); r.Wait <= 0 || r.Wait > longestMute || asked != 1 {
		t.Errorf("again: %+v, asked %d times", r, asked)
	}
	if err := a.DeleteTopic(t.Context(), ann, "t"); err != nil || asked != 2 {
		t.Errorf("another act: %v", err)
	}
	if r := refusal(t, a.DeleteGroup(t.Context(), bob, "g")); r.Wait != time.Hour || asked != 3 {
		t.Errorf("another user: %+v, asked %d times", r, asked)
	}
}

// A denial names the right, and the command that gives it; a group that is used says so.
func TestRefusalsSayWhatToDo(t *testing.T) {
	q := auth.Request{Principal: "User:ann", Operation: auth.Delete, Type: auth.Group, Name: "g"}
	for code, says := range map[int16]string{
		kerr.GroupAuthorizationFailed.Code: "User:ann may not DELETE group g",
		kerr.NonEmptyGroup.Code:            `group "g" has members; stop them first`,
		kerr.UnknownServerError.Code:       "the server experienced",
	} {
		a, _ := doing(t, func(kmsg.Request) (Answer, error) { return Answer{Response: deleted(code), Denied: &q}, nil })
		r := refusal(t, a.DeleteGroup(t.Context(), Asker{Principal: "User:ann"}, "g"))
		if !strings.Contains(r.Message, says) || (r.Lacks != nil) != (code == kerr.GroupAuthorizationFailed.Code) || r.Lacks != nil && !strings.Contains(r.Command, "muster acls add") {
			t.Errorf("%d: %+v", code, r)
		}
	}
	a, _ := doing(t, func(kmsg.Request) (Answer, error) { return Answer{Response: &kmsg.DeleteGroupsResponse{}}, nil })
	assert.ErrorIs(t, a.DeleteGroup(t.Context(), Asker{}, "g"), errNoOutcome, "without an outcome")
}

// A record without a key goes to a partition that this broker leads, and the audit log is
// told; one for another broker's partition is told where to go.
func TestARecordGoesWhereThisBrokerLeads(t *testing.T) {
	a, told := doing(t, func(req kmsg.Request) (Answer, error) {
		p := req.(*kmsg.ProduceRequest).Topics[0].Partitions[0]
		return Answer{Response: &kmsg.ProduceResponse{Topics: []kmsg.ProduceResponseTopic{{Partitions: []kmsg.ProduceResponseTopicPartition{{Partition: p.Partition, BaseOffset: 7}}}}}}, nil
	})
	for range 20 {
		if partition, offset, err := a.Produce(t.Context(), Asker{Principal: "User:ann"}, "orders", &Message{Value: []byte("v")}); partition != 1 || offset != 7 || err != nil {
			t.Fatalf("it is at %d in partition %d (%v)", offset, partition, err)
		}
	}
	if len(*told) != 20 || (*told)[0].Kind != audit.RecordProduced || (*told)[0].ClientID != ClientID {
		t.Errorf("told %+v", *told)
	}
	two := int32(2)
	var elsewhere *problem.Elsewhere
	if _, _, err := a.Produce(t.Context(), Asker{}, "orders", &Message{Partition: &two}); !errors.As(err, &elsewhere) || elsewhere.Broker != 2 {
		t.Errorf("of another broker: %v", err)
	}
}

// Where a partition is led is told to those alone who may do with the topic what they want, by
// their groups too. Others are refused by the handler.
func TestWhoMayNotWriteIsNotToldWhoLeads(t *testing.T) {
	denied := errors.New("the handler is asked")
	a, _ := doing(t, func(kmsg.Request) (Answer, error) { return Answer{}, denied })
	var asked auth.Request
	may := true
	a.Sees = func(q auth.Request) bool {
		asked = q
		return may
	}
	ann, two := Asker{Principal: "User:ann", Groups: "Group:ops", Host: "10.0.0.1"}, int32(2)
	var elsewhere *problem.Elsewhere
	if _, _, err := a.Produce(t.Context(), ann, "orders", &Message{Partition: &two}); !errors.As(err, &elsewhere) {
		t.Errorf("who may write is told %v", err)
	}
	if want := (auth.Request{Principal: "User:ann", Groups: "Group:ops", Host: "10.0.0.1", Operation: auth.Write, Type: auth.Topic, Name: "orders"}); asked != want {
		t.Errorf("asked is for %+v, want %+v", asked, want)
	}
	may = false
	if _, _, err := a.Produce(t.Context(), ann, "orders", &Message{Partition: &two}); !errors.Is(err, denied) {
		t.Errorf("who may not write is told %v", err)
	}
	if _, err := a.DeleteRecords(t.Context(), ann, "orders", map[int32]int64{0: 5}); !errors.Is(err, denied) || asked.Operation != auth.Delete {
		t.Errorf("who may not delete is told %v, for %v", err, asked.Operation)
	}
}

// Who may not see a topic is refused, and not told that its partitions have no leader.
func TestOffsetsOfATopicThatSomeoneMayNotSeeAreRefused(t *testing.T) {
	code := kerr.TopicAuthorizationFailed.Code
	a, _ := doing(t, func(kmsg.Request) (Answer, error) {
		return Answer{Response: &kmsg.ListOffsetsResponse{Topics: []kmsg.ListOffsetsResponseTopic{{
			Topic: "orders", Partitions: []kmsg.ListOffsetsResponseTopicPartition{{Partition: 1, ErrorCode: code, Offset: 5}},
		}}}}, nil
	})
	of := []groupview.TopicPartition{{Topic: "orders", Partition: 1}}
	if places, err := a.Offsets(t.Context(), Asker{}, of, nil); err == nil || refusal(t, err).Code != code {
		t.Errorf("it is at %v (%v)", places, err)
	}
	code = kerr.LeaderNotAvailable.Code
	if places, err := a.Offsets(t.Context(), Asker{}, of, nil); err != nil || len(places) != 0 {
		t.Errorf("without a leader it is at %v (%v)", places, err)
	}
}

// A user is gone only without a password for any mechanism.
func TestAUserIsDeletedByAllMechanisms(t *testing.T) {
	var deleted []int8
	a, _ := doing(t, func(req kmsg.Request) (Answer, error) {
		for _, d := range req.(*kmsg.AlterUserSCRAMCredentialsRequest).Deletions {
			deleted = append(deleted, d.Mechanism)
		}
		return Answer{Response: &kmsg.AlterUserSCRAMCredentialsResponse{Results: make([]kmsg.AlterUserSCRAMCredentialsResponseResult, 1)}}, nil
	})
	edit := a.Image().Edit()
	edit.SetUser("ann", []metadata.Credential{{Hash: 1, Iterations: 4096}, {Hash: 2, Iterations: 4096}})
	image := edit.Image()
	a.Options.Image = func() *metadata.Image { return image }
	if err := a.DeleteUser(t.Context(), Asker{}, "ann"); err != nil || !slices.Equal(deleted, []int8{1, 2}) {
		t.Errorf("deleted are %v (%v)", deleted, err)
	}
	if err := a.DeleteUser(t.Context(), Asker{}, "bob"); err != nil || len(deleted) != 3 {
		t.Errorf("of no user the broker is not asked: %v (%v)", deleted, err)
	}
}

func TestNothingIsDoneBeforeTheBrokerHasStarted(t *testing.T) {
	do := By(func() *handler.Handler { return nil }, "PLAINTEXT", func(auth.Request) {})
	if _, err := do(t.Context(), Asker{}, kmsg.NewPtrDeleteGroupsRequest()); err == nil {
		t.Error("it is done")
	}
}
