package broker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/assert"
	"muster/internal/broker"
	"muster/internal/web"
)

// committedIn returns what a group has committed in a topic, by the Kafka protocol.
func committedIn(t *testing.T, c *kgo.Client, group, topic string) map[int32]int64 {
	t.Helper()
	all, err := kadm.NewClient(c).FetchOffsets(t.Context(), group)
	must(t, err)
	out := map[int32]int64{}
	for p, o := range all[topic] {
		if o.At >= 0 {
			out[p] = o.At
		}
	}
	return out
}

// orderOf is the body that executes a plan.
func orderOf(t *testing.T, plan *web.ResetPlan) string {
	t.Helper()
	var order web.ResetOrder
	for _, p := range plan.Partitions {
		if p.To != nil {
			order.Partitions = append(order.Partitions, web.ResetMove{Topic: p.Topic, Partition: p.Partition, Committed: p.Committed, To: *p.To})
		}
	}
	body, err := json.Marshal(&order)
	must(t, err)
	return string(body)
}

func TestAGroupIsResetOverHTTP(t *testing.T) {
	inStores(t, func(t *testing.T, b *broker.Broker) {
		c := client(t, b, manual())
		makeTopic(t, c, "orders", 2, nil)
		for p := range int32(2) {
			fill(t, c, "orders", p, 100)
		}
		before := map[int32]int64{0: 40, 1: 100}
		for p, at := range before {
			commit(t, c, "billing", "orders", p, at)
		}
		for _, x := range []struct {
			body           string
			to             string
			again, skipped int64
			clamped        int
		}{
			{`{"to":"beginning"}`, "0 0", 140, 0, 0},
			{`{"to":"end"}`, "100 100", 0, 60, 0},
			{`{"to":"offset","value":"50"}`, "50 50", 50, 10, 0},
			{`{"to":"offset","value":"500"}`, "100 100", 0, 60, 2},
			{`{"to":"shift","value":"-50"}`, "0 50", 90, 0, 1},
			{`{"to":"shift","value":"9223372036854775807"}`, "100 100", 0, 60, 2},
			{`{"to":"timestamp","value":"-1h"}`, "0 0", 140, 0, 0},
			{`{"to":"timestamp","value":"2999-01-01"}`, "100 100", 0, 60, 0},
			{`{"topic":"orders","partitions":[1],"to":"beginning"}`, "0", 100, 0, 0},
		} {
			plan := does[web.ResetPlan](t, b, http.MethodPost, "/groups/billing/resets", x.body)
			var to []string
			again, skipped, clamped := int64(0), int64(0), 0
			for _, p := range plan.Partitions {
				to = append(to, fmt.Sprint(int64(*p.To)))
				again, skipped = again+*p.Again, skipped+*p.Skipped
				if p.Clamped {
					clamped++
				}
			}
			if strings.Join(to, " ") != x.to || again != x.again || skipped != x.skipped || clamped != x.clamped || plan.Refused != "" || plan.State != "Empty" || len(plan.Sentences) == 0 {
				t.Errorf("%s: %+v", x.body, plan)
			}
		}
		assert.MustEqualMaps(t, committedIn(t, c, "billing", "orders"), before, "the plans have moved the group")
		plan := does[web.ResetPlan](t, b, http.MethodPost, "/groups/billing/resets", `{"to":"offset","value":"7"}`)
		order := orderOf(t, &plan)
		commit(t, c, "billing", "orders", 0, 41) // Someone moves it meanwhile.
		if p := refuses(t, b, http.StatusConflict, http.MethodPost, "/groups/billing/resets/execute", order); !strings.Contains(p.Message, "has committed 41 in partition 0") {
			t.Errorf("after it has moved: %+v", p)
		}
		assert.MustEqualMaps(t, committedIn(t, c, "billing", "orders"), map[int32]int64{0: 41, 1: 100}, "what was refused has moved it")
		commit(t, c, "billing", "orders", 0, 40)
		does[web.Done](t, b, http.MethodPost, "/groups/billing/resets/execute", order)
		assert.EqualMaps(t, committedIn(t, c, "billing", "orders"), map[int32]int64{0: 7, 1: 7})
		refuses(t, b, http.StatusConflict, http.MethodPost, "/groups/billing/resets/execute", order) // Again.

		// A group that there is not is created.
		plan = does[web.ResetPlan](t, b, http.MethodPost, "/groups/fresh/resets", `{"topic":"orders","to":"end"}`)
		assert.True(t, plan.State == "Dead" && plan.Partitions[0].Committed == nil, "the plan is %+v", plan)
		does[web.Done](t, b, http.MethodPost, "/groups/fresh/resets/execute", orderOf(t, &plan))
		assert.EqualMaps(t, committedIn(t, c, "fresh", "orders"), map[int32]int64{0: 100, 1: 100})
		for body, want := range map[string]int{
			`{"to":"beginning"}`:                                           404, // Nothing is committed.
			`{"topic":"none","to":"beginning"}`:                            404,
			`{"topic":"orders","partitions":[2],"to":"end"}`:               404,
			`{"topic":"orders","partitions":[0,0],"to":"end"}`:             400,
			`{"partitions":[0],"to":"end"}`:                                400,
			`{"topic":"orders","to":"there"}`:                              400,
			`{"topic":"orders","to":"end","value":"1"}`:                    400,
			`{"topic":"orders","to":"offset"}`:                             400,
			`{"topic":"orders","to":"offset","value":"-1"}`:                400,
			`{"topic":"orders","to":"shift","value":"9e9"}`:                400,
			`{"topic":"orders","to":"timestamp","value":"noon"}`:           400,
			`{"topic":"orders","to":"offset","value":"99999999999999999"}`: 200,
		} {
			if code, _, text := send(t, b, http.MethodPost, "/groups/nobody/resets", body); code != want {
				t.Errorf("%s: %d %s", body, code, text)
			}
		}
	})
}

func TestAGroupWithMembersIsNotResetNorDeleted(t *testing.T) {
	b := startHTTP(t, nil)
	c := client(t, b)
	produce(t, c, "orders", 0, 10)
	readAll(t, b, "billing", 10, kgo.InstanceID("one"))
	before := committedIn(t, c, "billing", "orders")
	plan := does[web.ResetPlan](t, b, http.MethodPost, "/groups/billing/resets", `{"to":"beginning"}`)
	assert.True(t, plan.Members == 1 && plan.State == "Stable" && strings.Contains(plan.Refused, "1 member"), "the plan is %+v", plan)
	if p := refuses(t, b, http.StatusConflict, http.MethodPost, "/groups/billing/resets/execute", orderOf(t, &plan)); p.Kafka != "NON_EMPTY_GROUP" {
		t.Errorf("it says %+v", p)
	}
	if d := does[web.Done](t, b, http.MethodDelete, "/groups/billing?preview=true", ""); d.Refused == "" || d.Effect.Members != 1 || d.Effect.Partitions != 2 {
		t.Errorf("the preview is %+v", d)
	}
	refuses(t, b, http.StatusConflict, http.MethodDelete, "/groups/billing", "")
	if d := does[web.Done](t, b, http.MethodDelete, "/groups/billing/offsets?preview=true", `{"topic":"orders"}`); d.Refused == "" || d.Done {
		t.Errorf("the preview is %+v", d)
	}
	refuses(t, b, http.StatusConflict, http.MethodDelete, "/groups/billing/offsets", `{"topic":"orders"}`)
	assert.EqualMaps(t, committedIn(t, c, "billing", "orders"), before)

	// The member is removed, by its instance or its id.
	const one = `{"instanceId":"one","reason":"its host is gone"}`
	d := does[web.Done](t, b, http.MethodPost, "/groups/billing/members/remove?preview=true", one)
	if d.Done || d.Effect.Members != 1 || d.Effect.Partitions != 2 || !strings.Contains(d.Sentences[0], "its 2 partitions") {
		t.Errorf("the preview is %+v", d)
	}
	g := answer[web.GroupDetail](t, b, "/groups/billing")
	assert.MustEqual(t, len(g.Members), 1, "the preview has removed it")
	for body, want := range map[string]int{`{}`: 400, `{"memberId":"a","instanceId":"b"}`: 400, `{"memberId":"nobody"}`: 404, `{"instanceId":"nobody"}`: 404} {
		refuses(t, b, want, http.MethodPost, "/groups/billing/members/remove", body)
		refuses(t, b, want, http.MethodPost, "/groups/billing/members/remove?preview=true", body)
	}
	does[web.Done](t, b, http.MethodPost, "/groups/billing/members/remove", one)
	after := answer[web.GroupDetail](t, b, "/groups/billing")
	assert.False(t, len(after.Members) > 0 && after.Members[0].ID == g.Members[0].ID, "it is still %+v", after.Members)
	eventually(t, "the journal", func(context.Context) error { // No one waits for it.
		j, err := tried[web.Journal](t, b, "/groups/billing/journal?all=true")
		if err == nil && len(j.Entries) == 0 {
			err = errors.New("the journal is empty")
		}
		return err
	})
}

func TestGroupsAndTheirOffsetsAreDeletedOverHTTP(t *testing.T) {
	inStores(t, func(t *testing.T, b *broker.Broker) {
		c := client(t, b, manual())
		makeTopic(t, c, "orders", 3, nil)
		makeTopic(t, c, "other", 1, nil)
		for p := range int32(3) {
			commit(t, c, "billing", "orders", p, 0)
		}
		commit(t, c, "billing", "other", 0, 0)
		if d := does[web.Done](t, b, http.MethodDelete, "/groups/billing/offsets?preview=true", `{"topic":"orders","partitions":[1,2]}`); d.Done || d.Effect.Partitions != 2 || d.Refused != "" {
			t.Errorf("the preview is %+v", d)
		}
		if got := committedIn(t, c, "billing", "orders"); len(got) != 3 {
			t.Fatalf("the preview has left %v", got)
		}
		does[web.Done](t, b, http.MethodDelete, "/groups/billing/offsets", `{"topic":"orders","partitions":[1]}`)
		assert.EqualMaps(t, committedIn(t, c, "billing", "orders"), map[int32]int64{0: 0, 2: 0}, "what is left")
		does[web.Done](t, b, http.MethodDelete, "/groups/billing/offsets", `{"topic":"orders"}`)
		if got := committedIn(t, c, "billing", "orders"); len(got) != 0 || len(committedIn(t, c, "billing", "other")) != 1 {
			t.Errorf("left are %v", got)
		}
		refuses(t, b, http.StatusNotFound, http.MethodDelete, "/groups/billing/offsets", `{"topic":"orders"}`)
		refuses(t, b, http.StatusBadRequest, http.MethodDelete, "/groups/billing/offsets", `{}`)
		if d := does[web.Done](t, b, http.MethodDelete, "/groups/billing?preview=true", ""); d.Done || d.Effect.Partitions != 1 || d.Refused != "" {
			t.Errorf("the preview is %+v", d)
		}
		if code, _ := ask(t, b, "/groups/billing"); code != http.StatusOK {
			t.Fatal("the preview has deleted it")
		}
		does[web.Done](t, b, http.MethodDelete, "/groups/billing", "")
		if code, _ := ask(t, b, "/groups/billing"); code != http.StatusNotFound || len(committedIn(t, c, "billing", "other")) != 0 {
			t.Errorf("it is still there: %d", code)
		}
		refuses(t, b, http.StatusNotFound, http.MethodDelete, "/groups/billing", "")
		refuses(t, b, http.StatusNotFound, http.MethodDelete, "/groups/billing?preview=true", "")
	})
}
