package group

import (
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
	"muster/internal/group/kind"
	"muster/internal/machine"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
)

// guardedImage has the topics mine, theirs and yours, and an internal one. Ann may know of mine, and of yours
// from one host.
func guardedImage(t *testing.T) *metadata.Image {
	t.Helper()
	defaults, err := config.NewBroker(map[string]string{"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"})
	must(t, err)
	edit := metadata.NewImage(defaults).Edit()
	for i, name := range []string{"mine", "theirs", "yours"} {
		edit.PutTopic(metadata.Topic{Name: name, ID: metadata.TopicID{15: byte(i + 1)}, Partitions: make([]metadata.Partition, 1)})
	}
	edit.PutTopic(metadata.Topic{Name: metadata.OffsetsTopic, ID: metadata.TopicID{15: 9}, Internal: true, Partitions: make([]metadata.Partition, 1)})
	mine := auth.Rule{Type: auth.Topic, Pattern: auth.Literal, Name: "mine", Principal: auth.User("ann"), Host: auth.AnyHost, Operation: auth.Read, Permission: auth.Allow}
	yours := mine
	yours.Name, yours.Host = "yours", "10.0.0.1"
	all := mine
	all.Name, all.Principal = auth.Wildcard, auth.User("root")
	edit.AddRule(all)
	edit.AddRule(mine)
	edit.AddRule(yours)
	return edit.Image()
}

// found has someone join with a pattern, and returns what it is found to match.
func found(t *testing.T, image *metadata.Image, who metadata.Asker) []string {
	t.Helper()
	now := time.Unix(1_700_000_000, 0)
	s := NewShard(kind.DefaultConfig())
	step := func(e machine.Event) machine.Effects {
		return s.Step(machine.Input{Now: now, Image: image, MaxBatch: 1 << 20, Event: e})
	}
	step(machine.Loaded{Epoch: 1})
	pattern := ".*"
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Version, req.Group, req.MemberID, req.RebalanceTimeoutMillis = 1, "g", "m", 60_000
	req.SubscribedTopicRegex, req.Topics = &pattern, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	tasks := slices.Clone(step(machine.Request{ID: 1, Host: "10.0.0.1", Asker: who, Msg: req}).Tasks)
	for _, task := range tasks {
		step(machine.TaskDone{ID: task.ID, Result: task.Run()})
	}
	if r := s.consumer("g").Regexes[pattern]; r != nil {
		return r.Topics
	}
	t.Fatal("the pattern was not resolved")
	return nil
}

// Whoever may use a group could learn of all topics by a pattern.
func TestAPatternMatchesWhatTheMemberMayKnowOf(t *testing.T) {
	image := guardedImage(t)
	for who, want := range map[metadata.Asker][]string{
		{Principal: auth.User("ann"), Host: "10.0.0.2"}: {"mine"},
		{Principal: auth.User("ann"), Host: "10.0.0.1"}: {"mine", "yours"},
		{Principal: auth.User("bob"), Host: "10.0.0.1"}: {},
		{Principal: auth.User("root")}:                  {metadata.OffsetsTopic, "mine", "theirs", "yours"},
		{}:                                              {},
	} {
		if got := found(t, image, who); !slices.Equal(got, want) {
			t.Errorf("%+v finds %q, want %q", who, got, want)
		}
	}
	if got := found(t, imageOf(map[string]byte{"mine": 1, "theirs": 2}), metadata.Asker{}); len(got) != 2 {
		t.Errorf("without rights anybody finds %q, want both topics", got)
	}
}

func TestAShardForgetsWhoAsked(t *testing.T) {
	s := NewShard(kind.DefaultConfig())
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group = "g"
	s.Step(machine.Input{Now: time.Unix(100, 0), Image: guardedImage(t), Event: machine.Request{ID: 1, Asker: metadata.Asker{Principal: auth.User("ann")}, Msg: req}})
	s.ReleaseEffects()
	if s.step.Req.Asker != (metadata.Asker{}) {
		t.Errorf("%+v is kept", s.step.Req.Asker)
	}
}
