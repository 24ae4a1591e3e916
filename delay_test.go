package muster_test

import (
	"strconv"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster"
)

const initialDelay = "group.initial.rebalance.delay.ms"

// settingOf asks a broker for one of its settings.
func settingOf(t *testing.T, cfg muster.Config, name string) string {
	t.Helper()
	b, err := muster.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	brokers, err := admin.ListBrokers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	configs, err := admin.DescribeBrokerConfigs(t.Context(), brokers.NodeIDs()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range configs[0].Configs {
		if c.Key == name {
			return c.MaybeValue()
		}
	}
	t.Fatalf("node %s does not know %s", strconv.Quote(configs[0].Name), name)
	return ""
}

// Tests and programs that embed a broker know who will join; they need not wait
// for more.
func TestGroupsOfAnEmbeddedBrokerDoNotWaitForMoreMembers(t *testing.T) {
	for name, cfg := range map[string]muster.Config{"in memory": {}, "on disk": {Data: t.TempDir()}} {
		if got := settingOf(t, cfg, initialDelay); got != "0" {
			t.Errorf("%s the delay is %s ms", name, got)
		}
	}
	given := map[string]string{initialDelay: "1234"}
	if got := settingOf(t, muster.Config{Properties: given}, initialDelay); got != "1234" {
		t.Errorf("the delay that was asked for is %s ms", got)
	}
	if len(given) != 1 {
		t.Errorf("the caller's properties are %v now", given)
	}
}
