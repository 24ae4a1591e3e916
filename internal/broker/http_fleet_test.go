package broker_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	fscram "github.com/twmb/franz-go/pkg/sasl/scram"

	"muster/internal/assert"
	"muster/internal/auth/sasl"
	"muster/internal/broker"
	"muster/internal/redistest"
	"muster/internal/web"
	"muster/internal/web/problem"
)

// withHTTP has a broker of a fleet answer HTTP.
func withHTTP(c *broker.Config) {
	c.Properties["muster.http.listener"], c.Properties["group.initial.rebalance.delay.ms"] = "127.0.0.1:0", "0"
}

// lagging makes groups of which each has committed another number of five records, and
// waits until all brokers tell of them.
func lagging(t *testing.T, c *kgo.Client, brokers []*broker.Broker, n int) (names []string) {
	t.Helper()
	makeTopic(t, c, "orders", 3, nil)
	eventually(t, "produce", func(ctx context.Context) error {
		return c.ProduceSync(ctx, toTopic("orders", "a"), toTopic("orders", "b"), toTopic("orders", "c")).FirstErr()
	})
	for i := range n {
		names = append(names, fmt.Sprintf("g%02d", i))
		commit(t, c, names[i], "orders", int32(i%3), 0)
	}
	look(t, brokers)
	return names
}

// look has all brokers look at their groups.
func look(t *testing.T, brokers []*broker.Broker) {
	t.Helper()
	for _, b := range brokers {
		b.Status().Pass(t.Context())
	}
}

// pages reads a list page by page.
func pages(t *testing.T, b *broker.Broker, query string, change ...func(*http.Request)) (names []string, incomplete []web.Silent, err error) {
	t.Helper()
	for after := ""; ; {
		l, err := tried[web.GroupList](t, b, "/groups?limit=5&"+query+"&after="+after, change...)
		if err != nil {
			return nil, nil, err
		}
		for _, g := range l.Groups {
			names = append(names, fmt.Sprintf("%s:%d", g.Name, g.Lag))
		}
		incomplete = append(incomplete, l.Incomplete...)
		if after = l.Next; after == "" {
			return names, incomplete, nil
		}
	}
}

// Whoever is asked, the answer is that of the fleet.
func TestAnyBrokerOfAFleetAnswersForAll(t *testing.T) {
	t.Parallel()
	_, brokers := fleet(t, 3, withHTTP)
	names := lagging(t, client(t, brokers[0]), brokers, 12)
	coordinators := map[int32]bool{}
	for _, sort := range []string{"name", "-lag", "-name", "members", "-lagSeconds"} {
		var first []string
		for i, b := range brokers {
			eventually(t, "the whole list", func(context.Context) error {
				look(t, brokers)
				got, incomplete, err := pages(t, b, "sort="+sort)
				if err != nil || len(incomplete) > 0 || len(got) != len(names) {
					return fmt.Errorf("broker %d tells of %v, %v, %w", b.NodeID(), got, incomplete, err)
				}
				if i == 0 {
					first = got
				}
				if !strings.Contains(sort, "Seconds") && !slices.Equal(got, first) {
					return fmt.Errorf("broker %d tells of %v, not %v", b.NodeID(), got, first)
				}
				return nil
			})
		}
	}
	for _, b := range brokers {
		eventually(t, "one group", func(context.Context) error {
			for _, name := range names {
				code, body := ask(t, b, "/groups/"+name)
				var g web.GroupDetail
				if err := json.Unmarshal([]byte(body), &g); code != http.StatusOK || err != nil || g.Name != name || g.TotalLag == nil {
					return fmt.Errorf("%s: %d %s", name, code, body)
				}
				coordinators[g.Coordinator.Broker] = true
				for _, path := range []string{"/history", "/history?format=csv", "/explain", "/journal"} {
					if code, body := ask(t, b, "/groups/"+name+path); code != http.StatusOK {
						return fmt.Errorf("%s%s: %d %s", name, path, code, body)
					}
				}
			}
			return nil
		})
		eventually(t, "topics and brokers", func(context.Context) error { return tellsOfAll(t, b, len(names)) })
	}
	assert.True(t, len(coordinators) >= 2, "all groups have one coordinator, %v", coordinators)
}

// tellsOfAll says whether a broker knows what the others do.
func tellsOfAll(t *testing.T, b *broker.Broker, groups int) error {
	d, err := tried[web.TopicDetail](t, b, "/topics/orders")
	if err != nil || len(d.Groups) != groups || len(d.Incomplete) > 0 {
		return fmt.Errorf("the topic is %+v, %w", d, err)
	}
	var bytes int64
	for _, p := range d.Partitions {
		if p.Bytes == nil {
			return fmt.Errorf("partition %d is %+v", p.Partition, p)
		}
		bytes += *p.Bytes
	}
	for _, sort := range []string{"name", "-bytes", "groups"} {
		l, err := tried[web.TopicList](t, b, "/topics?q=orders&sort="+sort)
		if err != nil || len(l.Incomplete) > 0 || len(l.Topics) != 1 || l.Topics[0].Bytes != bytes || l.Topics[0].Groups != groups {
			return fmt.Errorf("the topics are %+v, with %d bytes, %w", l, bytes, err)
		}
	}
	known := 0
	list, err := tried[web.BrokerList](t, b, "/brokers")
	for _, row := range list.Brokers {
		if row.Health != nil && row.Health.Status == "ok" && row.Health.Node == row.ID && strings.HasPrefix(row.HTTP, "http://127.0.0.1:") {
			known += *row.Groups
		}
	}
	if err != nil || known != groups || len(list.Incomplete) > 0 {
		return fmt.Errorf("the brokers are %+v, %w", list, err)
	}
	if o, err := tried[web.Overview](t, b, "/overview"); err != nil || o.Groups == nil || *o.Groups != groups || o.Needing != len(o.Worst) || len(o.Incomplete)+len(o.Unwell) > 0 {
		return fmt.Errorf("the overview is %+v, %w", o, err)
	}
	return nil
}

// The journal of a group may be with a third broker, and all tell it.
func TestAnyBrokerOfAFleetTellsTheJournal(t *testing.T) {
	_, brokers := fleet(t, 3, withHTTP)
	makeTopic(t, client(t, brokers[0]), "orders", 1, nil)
	produce(t, client(t, brokers[0]), "orders", 0, 5)
	for i := range 4 {
		readAll(t, brokers[i%3], fmt.Sprint("reader", i), 5).Close()
	}
	for _, b := range brokers {
		for i := range 4 {
			group := fmt.Sprint("reader", i)
			eventually(t, "the journal of "+group, func(context.Context) error {
				if j, err := tried[web.Journal](t, b, "/groups/"+group+"/journal?all=true"); err != nil || len(j.Entries) == 0 || len(j.Incomplete) > 0 {
					return fmt.Errorf("the journal is %+v, %w", j, err)
				}
				if x, err := tried[web.Explanation](t, b, "/groups/"+group+"/explain"); err != nil || x.RebalanceCount == 0 || len(x.Incomplete) > 0 {
					return fmt.Errorf("it explains %+v, %w", x, err)
				}
				if all, err := tried[web.Journal](t, b, "/journal?q="+group); err != nil || len(all.Entries) == 0 || len(all.Incomplete) > 0 {
					return fmt.Errorf("found is %+v, %w", all, err)
				}
				return nil
			})
		}
	}
}

// What is to be done with a group or a partition is done by the broker that has it.
func TestAnyBrokerOfAFleetActs(t *testing.T) {
	_, brokers := fleet(t, 2, withHTTP)
	names := lagging(t, client(t, brokers[0]), brokers, 6)
	for _, b := range brokers {
		eventually(t, "to see all readers", func(context.Context) error {
			code, _, text := send(t, b, http.MethodDelete, "/topics/orders?preview=true", "")
			var got web.Done
			if err := json.Unmarshal([]byte(text), &got); err != nil || code != http.StatusOK || got.Effect == nil || !slices.Equal(got.Effect.Groups, names) || len(got.Effect.Incomplete) > 0 {
				return fmt.Errorf("%d %s", code, text)
			}
			return nil
		})
	}
	for i, name := range names {
		gone(t, brokers[i%2], name, http.StatusOK)
		gone(t, brokers[1-i%2], name, http.StatusNotFound)
		eventually(t, "to look", func(context.Context) error {
			if code, text := ask(t, brokers[1-i%2], "/groups/"+name); code != http.StatusNotFound {
				return fmt.Errorf("%s is still there: %d %s", name, code, text)
			}
			return nil
		})
	}
	for partition := range 3 {
		for _, b := range brokers {
			var got web.Produced
			eventually(t, "to produce", func(context.Context) error { // No one has waited for the leader.
				code, _, text := send(t, b, http.MethodPost, "/topics/orders/records", fmt.Sprintf(`{"partition":%d,"value":"x"}`, partition))
				if err := json.Unmarshal([]byte(text), &got); code != http.StatusOK || err != nil {
					return fmt.Errorf("%d %s", code, text)
				}
				return nil
			})
			assert.Equal(t, got.Partition, int32(partition), "it went to partition")
		}
	}
}

// gone has a broker delete a group, which must end as it is wanted. It is tried again while
// the one that has the group cannot, and that may have done it all the same.
func gone(t *testing.T, b *broker.Broker, group string, want int) {
	t.Helper()
	doubtful := false
	eventually(t, "to delete "+group, func(context.Context) error {
		code, _, text := send(t, b, http.MethodDelete, "/groups/"+group, "")
		switch {
		case code == want, doubtful && code == http.StatusNotFound:
			return nil
		case code == http.StatusServiceUnavailable:
			doubtful = true
			return errors.New(text)
		}
		t.Fatalf("%s: %d %s, want %d", group, code, text, want)
		return nil
	})
}

// hole is an address where someone listens and never answers.
func hole(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

// Who does not answer is named, and the others are told of.
func TestABrokerThatDoesNotAnswerIsNamed(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	_ = closed.Close()
	for advertised, want := range map[string]string{
		hole(t): "it did not answer within", closed.Addr().String(): "it cannot be reached at", "": "it has no HTTP address",
	} {
		s, brokers := fleet(t, 2, withHTTP)
		silent := join(t, s, withHTTP, func(c *broker.Config) { c.Properties["muster.http.advertised"] = advertised })
		brokers = append(brokers, silent)
		c := client(t, brokers[0])
		names := lagging(t, c, brokers, 9)
		whole, told := map[string]bool{}, 0
		eventually(t, "the whole list of who is not asked", func(context.Context) error {
			look(t, brokers)
			all, incomplete, err := pages(t, silent, "sort=name")
			if err != nil || len(all) != len(names) || len(incomplete) > 0 {
				return fmt.Errorf("it tells of %v, %v, %w", all, incomplete, err)
			}
			return nil
		})
		eventually(t, "the others", func(context.Context) error {
			l, err := tried[web.GroupList](t, brokers[0], "/groups")
			if err != nil || len(l.Incomplete) != 1 || l.Incomplete[0].Broker != silent.NodeID() || !strings.Contains(l.Incomplete[0].Message, want) && !strings.Contains(l.Incomplete[0].Message, "has not answered") {
				return fmt.Errorf("%q: the list is %+v, %w", advertised, l, err)
			}
			told = len(l.Groups)
			for _, g := range l.Groups {
				whole[g.Name] = true
			}
			return nil
		})
		own := answer[web.BrokerList](t, silent, "/brokers")
		for _, row := range own.Brokers {
			if row.ID == silent.NodeID() && told+*row.Groups != len(names) {
				t.Errorf("%q: %d groups are told of, and %d are missing", advertised, told, *row.Groups)
			}
		}
		for _, name := range names {
			if !whole[name] && strings.HasPrefix(want, "it did not answer") {
				continue // That takes long.
			}
			code, body := ask(t, brokers[0], "/groups/"+name)
			var p problem.Problem
			switch err := json.Unmarshal([]byte(body), &p); {
			case whole[name] && code != http.StatusOK, err != nil:
				t.Errorf("%q, %s: %d %s", advertised, name, code, body)
			case !whole[name] && code != http.StatusMisdirectedRequest:
				t.Errorf("%q, %s, which is missing: %d %s", advertised, name, code, body)
			}
		}
	}
}

// Whichever broker someone asks, they see what they may.
func TestRightsAreTheSameAtAllBrokersOfAFleet(t *testing.T) {
	brokers := fleetWithUsers(t)
	root := kgo.SASL(fscram.Auth{User: "root", Pass: "sesame"}.AsSha512Mechanism())
	c := client(t, brokers[0], root)
	names := lagging(t, c, brokers, 9)
	admin := kadm.NewClient(c)
	if _, err := admin.CreateACLs(t.Context(), kadm.NewACLs().Allow("User:ann").AllowHosts("*").Groups("g03", "g04").Operations(kadm.OpDescribe).ResourcePatternType(kadm.ACLPatternLiteral)); err != nil {
		t.Fatal(err)
	}
	must(t, brokers[0].SetPassword(t.Context(), "ann", "anns", sasl.SHA256))
	for _, b := range brokers {
		eventually(t, "what ann may see", func(context.Context) error {
			if code, _ := ask(t, b, "/groups", basic("ann", "anns")); code != http.StatusOK {
				return errors.New("ann cannot log in yet")
			}
			look(t, brokers)
			got, incomplete, err := pages(t, b, "sort=name", basic("ann", "anns"))
			if err != nil || len(incomplete) > 0 || len(got) != 2 || !strings.HasPrefix(got[0], "g03:") || !strings.HasPrefix(got[1], "g04:") {
				return fmt.Errorf("ann sees %v, %v, %w", got, incomplete, err)
			}
			if all, incomplete, err := pages(t, b, "sort=name", basic("root", "sesame")); err != nil || len(all) != len(names) || len(incomplete) > 0 {
				return fmt.Errorf("root sees %v, %v, %w", all, incomplete, err)
			}
			for name, want := range map[string]int{"g03": http.StatusOK, "g05": http.StatusForbidden} {
				if code, body := ask(t, b, "/groups/"+name, basic("ann", "anns")); code != want {
					return fmt.Errorf("%s: %d %s", name, code, body)
				}
			}
			return nil
		})
		// No one is believed to be a broker, or someone, because they say so.
		for _, change := range []func(*http.Request){
			func(r *http.Request) { r.Header.Set("Muster-Broker", "eyJwcmluY2lwYWwiOiJVc2VyOnJvb3QifQ.AAAA") },
			func(r *http.Request) { r.Header.Set("Muster-Broker", "") },
		} {
			if code, body := ask(t, b, "/groups", change); code != http.StatusUnauthorized || !strings.Contains(body, "not_a_broker") {
				t.Errorf("forged: %d %s", code, body)
			}
		}
	}
}

// The page of a topic names the keys that redis-cli reads its records from.
func TestTheAPINamesTheStreamsOfATopic(t *testing.T) {
	t.Parallel()
	s, brokers := fleet(t, 2, withHTTP, func(c *broker.Config) { c.Properties["muster.redis.layout"] = "indexed" })
	must(t, client(t, brokers[0], kgo.RecordPartitioner(kgo.ManualPartitioner())).ProduceSync(t.Context(),
		&kgo.Record{Topic: "orders", Partition: 1, Value: []byte("a")}, &kgo.Record{Topic: "orders", Partition: 1, Value: []byte("b")}).FirstErr())
	for _, b := range brokers {
		eventually(t, "the topic", func(context.Context) error {
			d, err := tried[web.TopicDetail](t, b, "/topics/orders")
			if err != nil || d.Streams == nil {
				return fmt.Errorf("broker %d tells of %+v, %w", b.NodeID(), d, err)
			}
			if n, err := s.Nodes[0].Do("XLEN", *d.Streams+"1"); err != nil || fmt.Sprint(n) != "2" {
				t.Errorf("%s1 has %v entries, %v", *d.Streams, n, err)
			}
			return nil
		})
	}
	_, opaque := fleet(t, 1, withHTTP)
	produce(t, client(t, opaque[0]), "orders", 0, 1)
	if d := answer[web.TopicDetail](t, opaque[0], "/topics/orders"); d.Streams != nil {
		t.Errorf("a topic of layout log has %s", *d.Streams)
	}
}

// fleetWithUsers has two brokers that want to know who people are.
func fleetWithUsers(t *testing.T) (brokers []*broker.Broker) {
	t.Helper()
	s := redistest.Single(t)
	for range 2 {
		brokers = append(brokers, join(t, s, withHTTP, func(c *broker.Config) {
			c.Properties["listeners"], c.Properties["muster.bootstrap.user"] = "SASL_PLAINTEXT://127.0.0.1:0", "root:sesame"
			c.Properties["authorizer.class.name"], c.Properties["super.users"] = "muster", "User:root"
		}))
	}
	return brokers
}

// A store that comes back empty has lost the secret and who the brokers are. They make it
// anew, and know each other again.
func TestAFleetKnowsItselfAgainAfterItsStoreWasEmptied(t *testing.T) {
	s, brokers := fleet(t, 2, withHTTP, func(c *broker.Config) {
		c.Properties["broker.session.timeout.ms"], c.Properties["broker.heartbeat.interval.ms"] = "2000", "200"
	})
	complete := func() error {
		for _, b := range brokers {
			if l, err := tried[web.BrokerList](t, b, "/brokers"); err != nil || len(l.Brokers) != 2 || len(l.Incomplete) > 0 {
				return fmt.Errorf("the brokers are %+v, %w", l, err)
			}
		}
		return nil
	}
	eventually(t, "before", func(context.Context) error { return complete() })
	secret := brokers[0].Image().Secrets.Current.Text
	if _, err := s.Nodes[0].Do("FLUSHALL"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "afterwards", func(context.Context) error {
		if now := brokers[0].Image().Secrets.Current.Text; now == secret || now == "" {
			return errors.New("the secret is the old one")
		}
		return complete()
	})
}

// streamed returns the lines of an answer that goes on until the test ends.
func streamed(t *testing.T, b *broker.Broker, path string) *bufio.Scanner {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+b.HTTPAddr()+web.Prefix+path, http.NoBody)
	must(t, err)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	must(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	return bufio.NewScanner(resp.Body)
}

// watching opens a stream of events and returns its lines.
func watching(t *testing.T, b *broker.Broker, watch string) *bufio.Scanner {
	t.Helper()
	lines := streamed(t, b, "/events?watch="+watch)
	lines.Scan()
	assert.MustEqual(t, lines.Text(), "event: open")
	return lines
}

// Who watches a group is told that something happened to it.
func TestTheAPITellsOfChangesAsTheyCome(t *testing.T) {
	b := startHTTP(t, nil)
	produce(t, client(t, b), "orders", 0, 5)
	lines := watching(t, b, "group:billing")
	readAll(t, b, "billing", 5)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), `data: {"watch":"group:billing"`) {
			return
		}
	}
	t.Errorf("it ended: %v", lines.Err())
}

// Changes of groups that another broker has are told as well.
func TestTheAPIOfAFleetTellsOfChangesEverywhere(t *testing.T) {
	t.Parallel()
	_, brokers := fleet(t, 2, withHTTP)
	makeTopic(t, client(t, brokers[0]), "orders", 1, nil)
	produce(t, client(t, brokers[0]), "orders", 0, 5)
	var streams []*bufio.Scanner
	for _, b := range brokers {
		streams = append(streams, watching(t, b, "group:billing"))
	}
	told := func(i int) {
		for lines := streams[i]; ; {
			if !lines.Scan() {
				t.Fatalf("broker %d: it ended: %v", i, lines.Err())
			}
			if strings.HasPrefix(lines.Text(), `data: {"watch":"group:billing"`) {
				return
			}
		}
	}
	for i := range streams {
		told(i) // Now the other broker was asked for the first time.
	}
	readAll(t, brokers[0], "billing", 5)
	for i := range streams {
		told(i)
	}
}

func toTopic(topic, value string) *kgo.Record { return &kgo.Record{Topic: topic, Value: []byte(value)} }
