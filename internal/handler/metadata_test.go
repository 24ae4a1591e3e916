package handler_test

import (
	"log/slog"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/handler"
)

func TestMetadataFindsATopicByItsID(t *testing.T) {
	w := newWorld(t)
	id, empty := w.c.Image().Topic("t").ID, ""
	for _, tt := range []struct {
		client string
		name   *string // what is sent beside the id
		id     [16]byte
		want   error
	}{
		{"franz-go", nil, id, nil},
		{"Java", &empty, id, nil},
		{"Java", &empty, [16]byte{1}, kerr.UnknownTopicID},
	} {
		req := kmsg.NewPtrMetadataRequest()
		req.Version, req.AllowAutoTopicCreation = 12, true
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic, topic.TopicID = tt.name, tt.id
		req.Topics = append(req.Topics, topic)
		got := w.request(req).(*kmsg.MetadataResponse).Topics[0]
		if err := kerr.ErrorForCode(got.ErrorCode); err != tt.want || got.TopicID != tt.id {
			t.Errorf("%s asks for %x: error %v, topic id %x", tt.client, tt.id, err, got.TopicID)
		}
		assert.Equal(t, got.Topic != nil && *got.Topic == "t", tt.want == nil, "%s asks for %x: name %v", tt.client, tt.id, got.Topic)
	}
}

func TestAlteredSettingsOfABrokerAreShownAsItsOwn(t *testing.T) {
	w := newWorld(t)
	const name = "offset.metadata.max.bytes"
	value := "5000"
	alter := kmsg.NewPtrIncrementalAlterConfigsRequest()
	altered := kmsg.NewIncrementalAlterConfigsRequestResource()
	altered.ResourceType, altered.ResourceName = kmsg.ConfigResourceTypeBroker, "1"
	altered.Configs = []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: name, Value: &value}}
	alter.Resources = append(alter.Resources, altered)
	if r := w.request(alter).(*kmsg.IncrementalAlterConfigsResponse).Resources[0]; r.ErrorCode != 0 {
		t.Fatal(kerr.ErrorForCode(r.ErrorCode))
	}
	for _, tt := range []struct {
		broker string
		names  []string
		want   kmsg.ConfigSource
	}{
		{"1", []string{name}, kmsg.ConfigSourceDynamicBrokerConfig},
		{"", []string{name}, kmsg.ConfigSourceDynamicDefaultBrokerConfig},
		{"", nil, kmsg.ConfigSourceDynamicDefaultBrokerConfig}, // All that all brokers have is this one.
	} {
		describe := kmsg.NewPtrDescribeConfigsRequest()
		describe.Version = 4
		described := kmsg.NewDescribeConfigsRequestResource()
		described.ResourceType, described.ResourceName, described.ConfigNames = kmsg.ConfigResourceTypeBroker, tt.broker, tt.names
		describe.Resources = append(describe.Resources, described)
		got := w.request(describe).(*kmsg.DescribeConfigsResponse).Resources[0].Configs
		if len(got) != 1 || *got[0].Value != value || got[0].Source != tt.want {
			t.Errorf("broker %q: %d settings, value %s, source %s, want %s", tt.broker, len(got), *got[0].Value, got[0].Source, tt.want)
		}
	}
}

// A broker that has signed off and is about to stop must not say that there are no
// brokers: a client would forget the only one that it knows. It hangs up instead.
func TestNobodyIsToldThatThereAreNoBrokers(t *testing.T) {
	w := newWorld(t)
	edit := w.c.Image().Edit()
	edit.RemoveBroker(1)
	w.h = handler.New(handler.Options{NodeID: 1, Controller: &fleet{w.c, edit.Image()}, Partitions: w.m, Groups: w.groups, Logger: slog.New(slog.DiscardHandler)})
	for _, req := range []kmsg.Request{kmsg.NewPtrMetadataRequest(), kmsg.NewPtrDescribeClusterRequest()} {
		frame := kmsg.NewRequestFormatter().AppendRequest(nil, req, 7)[4:]
		if _, err := w.h.Serve(t.Context(), handler.Origin{Listener: "L", Host: "127.0.0.1"}, frame); err == nil {
			t.Errorf("%T is answered", req)
		}
	}
}
