package handler_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
)

// Kafka's tools print the message of an answer in the place of their own, so one that only
// repeats the code must not be there.
func TestWhatACodeSaysAloneHasNoMessage(t *testing.T) {
	w := newGuardedWorld(t)
	create := kmsg.NewPtrCreateTopicsRequest()
	create.Version, create.Topics = 7, []kmsg.CreateTopicsRequestTopic{{Topic: "new", NumPartitions: 1, ReplicationFactor: 1}}
	if got := w.as(alice, create).(*kmsg.CreateTopicsResponse).Topics[0]; got.ErrorCode != topicDenied || got.ErrorMessage != nil {
		t.Errorf("creating: error %d, message %q", got.ErrorCode, message(got.ErrorMessage))
	}
	grow := kmsg.NewPtrCreatePartitionsRequest()
	grow.Version, grow.Topics = 3, []kmsg.CreatePartitionsRequestTopic{{Topic: "t", Count: 9}}
	if got := w.as(alice, grow).(*kmsg.CreatePartitionsResponse).Topics[0]; got.ErrorCode != topicDenied || got.ErrorMessage != nil {
		t.Errorf("growing: error %d, message %q", got.ErrorCode, message(got.ErrorMessage))
	}
	// What says more than the code is told.
	w.may(alice, auth.Create, auth.Topic, "new")
	create.Topics[0].NumPartitions = -7
	if got := w.as(alice, create).(*kmsg.CreateTopicsResponse).Topics[0]; got.ErrorCode != kerr.InvalidPartitions.Code || message(got.ErrorMessage) == "" {
		t.Errorf("bad partitions: error %d, message %q", got.ErrorCode, message(got.ErrorMessage))
	}
}

func message(m *string) string {
	if m == nil {
		return ""
	}
	return *m
}
