package native

import (
	"container/list"
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"muster/internal/store"
	"muster/internal/store/redis/conn"
)

// A Fetch does not say which group its consumer is a member of. Brokers learn
// it from the coordinators: when a member has got partitions, its coordinator
// tells on a channel which group that was and how to recognize the member, by
// its client id and host. The leader of a partition then knows at the member's
// first Fetch that the group begins there.

// assignedLimit is how many partitions of groups a broker remembers that were
// assigned and not fetched yet. The oldest are forgotten first.
const assignedLimit = 100_000

// Assigned says that a member of a group has got partitions.
type Assigned struct {
	Group      string              `json:"group"`
	ClientID   string              `json:"clientId"`
	Host       string              `json:"host"`
	Partitions []AssignedPartition `json:"partitions"`
}

// AssignedPartition names a partition.
type AssignedPartition struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
}

// Assignments knows which groups' members will begin to fetch which partitions.
type Assignments struct {
	client  rueidis.Client
	channel string
	logger  *slog.Logger

	// expected holds groups by the fetch they are expected from. Readers do not
	// take the lock.
	expected sync.Map // fetcher → []string

	mu    sync.Mutex
	limit int
	// members says from whom a group's fetch of a partition is expected, and
	// order has the same, oldest first.
	members map[moveKey]*list.Element
	order   *list.List // of expectation
}

// fetcher is what a broker knows of a consumer that fetches a partition.
type fetcher struct {
	clientID, host string
	tp             store.TopicPartition
}

// expectation is that a fetcher is a group's member.
type expectation struct {
	key  moveKey
	from fetcher
}

// NewAssignments returns what is announced under a prefix. Listen fills it.
func NewAssignments(client rueidis.Client, prefix string, logger *slog.Logger) *Assignments {
	return &Assignments{
		client: client, channel: prefix + ":__assigned", logger: logger,
		limit: assignedLimit, members: make(map[moveKey]*list.Element), order: list.New(),
	}
}

// Announce tells all brokers, this one included, what a member has got.
func (a *Assignments) Announce(ctx context.Context, assigned Assigned) error {
	text, err := json.Marshal(assigned)
	if err != nil {
		return err
	}
	publish := a.client.B().Publish().Channel(a.channel).Message(rueidis.BinaryString(text)).Build()
	return conn.Attempt("announcing what group "+assigned.Group+" was assigned", a.client.Do(ctx, publish).Error())
}

// Listen hears announcements until ctx ends, also after Redis was away. What
// was announced meanwhile is missed, which costs little: those groups are
// created by their first commit.
func (a *Assignments) Listen(ctx context.Context) {
	for {
		// It ends with an error, or with none when the client is closed. The
		// connection is one of its own: Redis gives up on a connection with a
		// subscription when 32 MB of answers wait to be read on it
		// (client-output-buffer-limit), and a few fetches are more than that.
		own, giveBack := a.client.Dedicate()
		_ = own.Receive(ctx, own.B().Subscribe().Channel(a.channel).Build(), func(m rueidis.PubSubMessage) {
			a.hear(m.Message)
		})
		giveBack()
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
}

// hear takes one announcement in.
func (a *Assignments) hear(text string) {
	var assigned Assigned
	if err := json.Unmarshal([]byte(text), &assigned); err != nil || assigned.Group == "" {
		a.logger.Warn("an announcement on a redis channel is not understood", "channel", a.channel, "error", err)
		return
	}
	a.take(assigned)
}

func (a *Assignments) take(assigned Assigned) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range assigned.Partitions {
		tp := store.TopicPartition{Topic: p.Topic, Partition: p.Partition}
		a.expect(expectation{moveKey{tp, assigned.Group}, fetcher{assigned.ClientID, assigned.Host, tp}})
	}
}

// expect replaces what was expected of the group in that partition: it has one
// member at a time.
func (a *Assignments) expect(e expectation) {
	if old := a.members[e.key]; old != nil {
		a.drop(old)
	}
	for a.order.Len() >= a.limit {
		a.drop(a.order.Front())
	}
	a.members[e.key] = a.order.PushBack(e)
	groups, _ := a.expected.Load(e.from)
	old, _ := groups.([]string)
	a.expected.Store(e.from, append(old[:len(old):len(old)], e.key.group))
}

// drop forgets an expectation.
func (a *Assignments) drop(element *list.Element) {
	e := a.order.Remove(element).(expectation)
	delete(a.members, e.key)
	groups, _ := a.expected.Load(e.from)
	var rest []string
	old, _ := groups.([]string)
	for _, group := range old {
		if group != e.key.group {
			rest = append(rest, group)
		}
	}
	if len(rest) == 0 {
		a.expected.Delete(e.from)
	} else {
		a.expected.Store(e.from, rest)
	}
}

// Expect returns the groups of which a consumer, known by its client id and
// host, is about to fetch a partition for the first time. They are returned
// once. It is called for every fetch, and nearly always finds nothing, without
// a lock.
func (a *Assignments) Expect(clientID, host string, tp store.TopicPartition) []string {
	from := fetcher{clientID, host, tp}
	if _, ok := a.expected.Load(from); !ok {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	groups, _ := a.expected.Load(from)
	found, _ := groups.([]string)
	for _, group := range found {
		a.drop(a.members[moveKey{tp, group}])
	}
	return found
}
