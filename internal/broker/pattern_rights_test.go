package broker_test

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	fscram "github.com/twmb/franz-go/pkg/sasl/scram"

	"muster/internal/assert"
)

// A client subscribes to everything by a regular expression that the broker resolves.
// What it may not see is not given to it.
func TestASubscriptionToEverythingIsToWhatTheClientMaySee(t *testing.T) {
	b := startSASL(t, map[string]string{
		"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"muster.bootstrap.user": "root:roots",
	})
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	root := client(t, b, kgo.SASL(fscram.Auth{User: "root", Pass: "roots"}.AsSha256Mechanism()))
	admin := kadm.NewClient(root)
	if _, err := admin.CreateTopics(ctx, 1, 1, nil, "seen", "hidden"); err != nil {
		t.Fatal(err)
	}
	for _, rules := range []*kadm.ACLBuilder{
		kadm.NewACLs().Topics("seen").Operations(kadm.OpRead),
		kadm.NewACLs().Groups("g").Operations(kadm.OpRead),
	} {
		if _, err := admin.CreateACLs(ctx, rules.Allow("User:ann").ResourcePatternType(kadm.ACLPatternLiteral)); err != nil {
			t.Fatal(err)
		}
	}
	for _, topic := range []string{"hidden", "seen"} {
		produce(t, root, topic, 0, 1)
	}
	c := client(t, b, kgo.SASL(fscram.Auth{User: "ann", Pass: "anns"}.AsSha256Mechanism()), kgo.ConsumeRegex(), kgo.ConsumeTopics(".*"),
		kgo.ConsumerGroup("g"), kgo.ServerSideBalancer(), kgo.Balancers(kgo.RangeBalancer()))
	defer c.Close()
	for consumed := 0; consumed == 0; {
		fetches := c.PollFetches(ctx)
		for _, e := range fetches.Errors() {
			t.Fatalf("%s: %v", e.Topic, e.Err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if consumed++; r.Topic != "seen" {
				t.Errorf("a record of %s", r.Topic)
			}
		})
	}
	groups, err := admin.DescribeConsumerGroups(ctx, "g")
	must(t, err)
	members := groups["g"].Members
	assert.MustTrue(t, len(members) == 1 && members[0].SubscribedTopicRegex != nil, "the member did not leave it to the broker: %+v", members)
	if target := members[0].TargetAssignment; len(target) != 1 || target["seen"] == nil {
		t.Errorf("the member is to have %v", target)
	}
}
