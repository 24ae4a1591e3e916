package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/assert"
	"muster/internal/watch/explain"
	"muster/internal/watch/groupview"
	"muster/internal/web"
)

// fromAPI reads an answer of the HTTP API.
func fromAPI[A any](t *testing.T, address, path string) (out A) {
	t.Helper()
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + address + web.Prefix + path)
	must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(body, &out)
	}
	assert.MustTrue(t, err == nil && resp.StatusCode == http.StatusOK, "%s: %d %s, %v", path, resp.StatusCode, body, err)
	return out
}

// told is what command and API must both say of a group; ages in sentences are not in it.
type told struct {
	Text       string
	Rebalances [][]string
	Findings   []string
	Events     int
}

func toldBy(t *testing.T, x any) (out told) {
	t.Helper()
	switch x := x.(type) {
	case explain.Explanation:
		out.Text, out.Events = x.Text, x.EventCount
		for _, r := range x.Rebalances {
			out.Rebalances = append(out.Rebalances, r.Text)
		}
		for _, f := range x.Findings {
			out.Findings = append(out.Findings, f.ID+": "+f.Change)
		}
	case web.Explanation:
		out.Text, out.Events = x.Text, x.EventCount
		for _, r := range x.Rebalances {
			out.Rebalances = append(out.Rebalances, r.Text)
		}
		for _, f := range x.Findings {
			out.Findings = append(out.Findings, f.ID+": "+f.Change)
		}
	}
	return out
}

// The API and the command say the same of groups of both protocols, with members and
// without.
func TestTheAPIAndTheCommandSayTheSame(t *testing.T) {
	s := newShell(t, "group.initial.rebalance.delay.ms", "0", "muster.http.listener", "127.0.0.1:0")
	described, err := kadm.NewClient(s.client()).DescribeBrokerConfigs(t.Context(), 1)
	must(t, err)
	var address string
	for _, c := range described[0].Configs {
		if c.Key == "muster.http.advertised" {
			address = strings.TrimPrefix(c.MaybeValue(), "http://")
		}
	}
	s.run("topics", "create", "orders", "-p", "3").ok()
	s.run("topics", "create", "other", "-p", "1").ok()
	commit(t, s.client(), "idle", "orders", 0)
	one := s.member("billing", []string{"orders"}, kgo.ClientID("one"))
	s.stable("billing", 1)
	s.pipe(recordLines(0, 3, 0), "produce", "orders", "--json-lines").ok()
	s.take(one, 3)
	s.member("billing", []string{"orders", "other"}, kgo.ClientID("two"), kgo.InstanceID("static"))
	s.stable("billing", 2)
	s.pipe(recordLines(0, 5, 0), "produce", "orders", "--json-lines").ok()
	first := s.rawConsumer("new", "first", subscribed("orders"))
	eventually(t, func() error { first.beat(); return wantState(s.describe("new"), groupview.Stable) })
	for _, group := range []string{"billing", "idle", "new"} {
		command := s.describe(group)
		api := fromAPI[web.GroupDetail](t, address, "/groups/"+group)
		if got, want := facts(api), factsOf(command); got != want {
			t.Errorf("of group %s the API says\n%s\nand the command\n%s", group, got, want)
		}
		var says, want told
		eventually(t, func() error { // No one waits for the journal.
			says, want = toldBy(t, fromAPI[web.Explanation](t, address, "/groups/"+group+"/explain")), toldBy(t, decode[explain.Explanation](s.run("groups", "explain", group, "--json")))
			if !reflect.DeepEqual(says, want) {
				return fmt.Errorf("the API explains %+v, the command %+v", says, want)
			}
			if group == "billing" && (len(want.Rebalances) < 2 || len(want.Findings) == 0) {
				return fmt.Errorf("the command explains only %+v", want)
			}
			return nil
		})
	}
}

func facts(g web.GroupDetail) string {
	out := fmt.Sprintln(g.Name, g.Type, g.State, g.ProtocolType, g.Assignor, *g.TotalLag, g.Uncommitted, *g.Coordinator)
	for _, m := range g.Members {
		out += fmt.Sprintln(m.ID, m.ClientID, m.Host, m.Instance != nil, m.Topics, m.Assigned, text(m.Epoch), m.Target, m.Classic, m.Waits)
	}
	for _, p := range g.Partitions {
		out += fmt.Sprintln(p.Topic, p.Partition, text(p.Committed), text(p.LogStart), text(p.LogEnd), text(p.Lag), text(p.Owner))
	}
	return out
}

func factsOf(g groupview.Group) string {
	out := fmt.Sprintln(g.Name, g.Type, g.State, g.ProtocolType, g.Assignor, *g.TotalLag, g.Uncommitted, *g.Coordinator)
	for _, m := range g.Members {
		out += fmt.Sprintln(m.ID, m.ClientID, m.Host, m.Instance != nil, m.Topics, m.Assigned, text(m.Epoch), m.Target, m.Classic, m.Waits)
	}
	for _, p := range g.Partitions {
		out += fmt.Sprintln(p.Topic, p.Partition, text(p.Committed), text(p.LogStart), text(p.LogEnd), text(p.Lag), text(p.Owner))
	}
	return out
}

func text[T any](p *T) string {
	if p == nil {
		return "-"
	}
	return fmt.Sprint(*p)
}
