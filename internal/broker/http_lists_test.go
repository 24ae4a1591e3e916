package broker_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"muster/internal/assert"
	"muster/internal/broker"
	"muster/internal/web"
)

// setOffset sets a committed offset of orders, as someone who is no member.
func setOffset(t *testing.T, b *broker.Broker, group string, at int64) {
	t.Helper()
	var offsets kadm.Offsets
	offsets.Add(kadm.Offset{Topic: "orders", At: at, LeaderEpoch: -1})
	must(t, kadm.NewClient(client(t, b)).CommitAllOffsets(t.Context(), group, offsets))
}

func TestTheAPIListsWhatTheLastLookSaw(t *testing.T) {
	b := startHTTP(t, map[string]string{"num.partitions": "1"})
	produce(t, client(t, b), "orders", 0, 50)
	readAll(t, b, "billing", 50)
	setOffset(t, b, "idle", 20)
	produce(t, client(t, b), "orders", 50, 7)
	b.Status().Pass(t.Context())

	l := answer[web.GroupList](t, b, "/groups?sort=-lag")
	if len(l.Groups) != 2 || l.Groups[0].Name != "idle" || l.Groups[0].Lag != 37 || l.Groups[1].Lag != 7 || l.Groups[1].Members != 1 || l.At == nil || *l.Total != 2 {
		t.Errorf("the groups are %+v", l)
	}
	if !slices.Equal(l.Groups[0].Findings, []string{"lag-without-members"}) || !slices.Equal(l.Groups[1].Topics, []string{"orders"}) {
		t.Errorf("the groups are %+v", l.Groups)
	}
	page := answer[web.GroupList](t, b, "/groups?sort=-lag&limit=1")
	if next := answer[web.GroupList](t, b, "/groups?sort=-lag&limit=1&after="+page.Next); len(next.Groups) != 1 || next.Groups[0].Name != "billing" || next.Next != "" {
		t.Errorf("the second page is %+v", next)
	}
	if code, body := ask(t, b, "/groups?state=Empty&format=csv"); code != http.StatusOK || !strings.Contains(body, "\nidle,classic,Empty,0,1,37,") {
		t.Errorf("as CSV: %d %s", code, body)
	}
	o := answer[web.Overview](t, b, "/overview")
	if o.Needing != 1 || o.Worst[0].Name != "idle" || !strings.HasPrefix(o.Worst[0].Text, "idle has no members, and 37 records wait to be read") {
		t.Errorf("the overview is %+v", o)
	}
	topics := answer[web.TopicList](t, b, "/topics")
	assert.True(t, len(topics.Topics) == 1 && topics.Topics[0].Groups == 2 && topics.Topics[0].Bytes != 0, "the topics are %+v", topics)
	topic := answer[web.TopicDetail](t, b, "/topics/orders")
	if len(topic.Groups) != 2 || topic.Groups[0].Lag != 7 || topic.Groups[1].Lag != 37 || *topic.Partitions[0].LogEndOffset != 57 || *topic.Partitions[0].Records != 57 {
		t.Errorf("the topic is %+v", topic)
	}
	if g := answer[web.GroupDetail](t, b, "/groups/billing"); g.Watched == nil || g.Watched.Lag != 7 || g.Partitions[0].LagSeconds == nil {
		t.Errorf("the group is %+v", g)
	}
}

func TestTheAPITellsTheLagOverTime(t *testing.T) {
	b := startHTTP(t, map[string]string{"num.partitions": "1"})
	produce(t, client(t, b), "orders", 0, 50)
	setOffset(t, b, "idle", 20)
	b.Status().Pass(t.Context())
	setOffset(t, b, "idle", 30)
	eventually(t, "history", func(ctx context.Context) error {
		b.Status().Pass(ctx)
		h, err := tried[web.History](t, b, "/groups/idle/history")
		if err == nil && (len(h.Points) == 0 || h.StepSeconds != 10) {
			err = errors.New("it has no points")
		}
		return err
	})
	if code, _ := ask(t, b, "/groups/nobody/history"); code != http.StatusNotFound {
		t.Errorf("of no group: %d", code)
	}
}
