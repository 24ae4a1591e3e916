package broker_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/broker"
	"muster/internal/group"
)

// alterGroup sets settings of a group, given as name, value, name, value.
func alterGroup(t *testing.T, c *kgo.Client, id string, set ...string) {
	t.Helper()
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	res := kmsg.IncrementalAlterConfigsRequestResource{ResourceType: kmsg.ConfigResourceTypeGroupConfig, ResourceName: id}
	for i := 0; i < len(set); i += 2 {
		res.Configs = append(res.Configs, kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: set[i], Value: &set[i+1]})
	}
	req.Resources = append(req.Resources, res)
	resp, err := req.RequestWith(t.Context(), c)
	must(t, err)
	if r := resp.Resources[0]; r.ErrorCode != 0 {
		t.Fatalf("%v: %s", kerr.ErrorForCode(r.ErrorCode), *r.ErrorMessage)
	}
}

// beat sends a heartbeat of member m in a group, and returns how often it is to come.
func beat(t *testing.T, c *kgo.Client, id string, epoch int32) (next int32, every time.Duration) {
	t.Helper()
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Group, req.MemberID, req.MemberEpoch, req.RebalanceTimeoutMillis = id, "m", epoch, -1
	if epoch == 0 {
		req.RebalanceTimeoutMillis, req.SubscribedTopicNames, req.Topics = 60000, []string{"orders"}, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	}
	eventually(t, "heartbeat", func(ctx context.Context) error { // The client does not try it again while the coordinator loads.
		resp, err := req.RequestWith(ctx, c)
		if err != nil {
			return err
		}
		next, every = resp.MemberEpoch, time.Duration(resp.HeartbeatIntervalMillis)*time.Millisecond
		return kerr.ErrorForCode(resp.ErrorCode)
	})
	return next, every
}

// wantEvery demands that a group has an interval, which its member is told with its next
// heartbeat.
func wantEvery(t *testing.T, c *kgo.Client, epoch int32, want time.Duration) {
	t.Helper()
	if _, every := beat(t, c, "g", epoch); every != want {
		t.Errorf("told to come every %s, not %s", every, want)
	}
}

func TestSettingsOfAGroupReachItsMembersAlsoAfterARestart(t *testing.T) {
	props := map[string]string{"muster.store": "disk", "log.dir": t.TempDir(), "group.consumer.min.heartbeat.interval.ms": "100"}
	b := start(t, props)
	c := client(t, b)
	if _, err := kadm.NewClient(c).CreateTopic(t.Context(), 2, 1, nil, "orders"); err != nil {
		t.Fatal(err)
	}
	epoch, every := beat(t, c, "g", 0)
	assert.Equal(t, every, 5*time.Second, "the interval without settings")
	alterGroup(t, c, "g", "consumer.heartbeat.interval.ms", "300", "consumer.session.timeout.ms", "50000", "consumer.assignment.interval.ms", "0")
	wantEvery(t, c, epoch, 300*time.Millisecond)
	want := group.Settings{Session: 50 * time.Second, Heartbeat: 300 * time.Millisecond}
	assert.Equal(t, b.GroupConfig().Consumer.Groups["g"], want, "the group")
	if _, other := beat(t, c, "h", 0); other != 5*time.Second {
		t.Errorf("another group: every %s", other)
	}
	c.Close()
	must(t, b.Close())

	b = start(t, props)
	c = client(t, b)
	wantEvery(t, c, epoch, 300*time.Millisecond)
	assert.Equal(t, b.GroupConfig().Consumer.Groups["g"], want, "after a restart the group")
	// The broker's bounds count for what is in use, also when they change.
	least := "700"
	altered, err := kadm.NewClient(c).AlterBrokerConfigs(t.Context(), []kadm.AlterConfig{{Name: "group.consumer.min.heartbeat.interval.ms", Value: &least}})
	if err != nil || altered[0].Err != nil {
		t.Fatal(err, altered)
	}
	wantEvery(t, c, epoch, 700*time.Millisecond)
}

func TestSettingsOfAGroupReachEveryBroker(t *testing.T) {
	_, brokers := fleet(t, 2)
	alterGroup(t, client(t, brokers[0]), "g", "consumer.heartbeat.interval.ms", "6000")
	for _, b := range brokers {
		eventually(t, "have the settings of the group", func(context.Context) error { return hasInterval(b, 6*time.Second) })
	}
}

func hasInterval(b *broker.Broker, want time.Duration) error {
	if got := b.GroupConfig().Consumer.Groups["g"].Heartbeat; got != want {
		return fmt.Errorf("the interval is %s", got)
	}
	return nil
}
