package interop

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// A member of a group is a process of its own, so that it can crash (SIGKILL)
// and stall (SIGSTOP) as members do: a client in this process would say goodbye,
// or go on heartbeating from a goroutine. Go clients are this test binary,
// started again with memberEnv set; KafkaJS is interop/js/member.js. They are
// told what to do in a memberSpec, report in lines of JSON on standard output,
// and leave the group when a line "leave" comes on standard input.

// memberEnv holds the memberSpec of a process that is a member.
const memberEnv = "MUSTER_GROUP_MEMBER"

// memberSpec is what a member is told. Member.js reads the same JSON.
type memberSpec struct {
	Client     string `json:"client"`
	Addr       string `json:"addr"`
	Group      string `json:"group"`
	Topic      string `json:"topic"`
	Assignor   string `json:"assignor"`
	ClientID   string `json:"clientId"`
	InstanceID string `json:"instanceId,omitempty"`

	SessionMillis   int `json:"sessionMillis"`
	HeartbeatMillis int `json:"heartbeatMillis"`
	RebalanceMillis int `json:"rebalanceMillis"`

	// Brisk has a client look for another broker sooner than by default.
	Brisk bool `json:"brisk,omitempty"`

	// Consumer has it join by the consumer group protocol (KIP-848), whose assignor is
	// one of the broker's. Clients that can may also be given several addresses, and a
	// pattern: then they read the topics that match it, instead of one.
	Consumer bool   `json:"consumer,omitempty"`
	Pattern  string `json:"pattern,omitempty"`
}

func (s *memberSpec) session() time.Duration {
	return time.Duration(s.SessionMillis) * time.Millisecond
}
func (s *memberSpec) heartbeat() time.Duration {
	return time.Duration(s.HeartbeatMillis) * time.Millisecond
}

func (s *memberSpec) rebalance() time.Duration {
	return time.Duration(s.RebalanceMillis) * time.Millisecond
}

// memberCommits is how often members commit, memberMaxWait how long their
// fetches wait.
const (
	memberCommits = 200 * time.Millisecond
	memberMaxWait = 250 * time.Millisecond
)

// memberReport is one line of what a member says. A record is reported before it
// may be committed.
type memberReport struct {
	Event string `json:"event"`
	// For assigned (what came), revoked and lost (what went). The generation is
	// 0 where the client does not tell.
	Generation int32   `json:"generation,omitempty"`
	Topic      string  `json:"topic,omitempty"`
	At         int64   `json:"at,omitempty"` // when it was so, in nanoseconds
	Partitions []int32 `json:"partitions,omitempty"`
	// For records.
	Partition int32   `json:"partition,omitempty"`
	Offsets   []int64 `json:"offsets,omitempty"`
	// For heartbeats: how many were answered so far.
	Count int `json:"count,omitempty"`
	// For failed, and for note, which is only for people.
	Text string `json:"text,omitempty"`
}

const (
	eventAssigned   = "assigned"
	eventRevoked    = "revoked"
	eventLost       = "lost"
	eventRecords    = "records"
	eventHeartbeats = "heartbeats"
	eventLeft       = "left"
	eventFailed     = "failed"
	eventNote       = "note"
)

// memberClients run a member until the context ends, and then leave the group.
var memberClients = map[string]func(context.Context, memberSpec, *reporter) error{
	"franz-go":   franzMember,
	"librdkafka": librdkafkaMember,
	"sarama":     saramaMember,
	"kafka-go":   kafkaGoMember,
}

// consumerClients are those that speak the consumer group protocol (KIP-848) too.
var consumerClients = map[string]bool{"franz-go": true, "librdkafka": true}

// A member is not a test: it must not come as far as TestMain, which builds the
// broker.
func init() {
	if text := os.Getenv(memberEnv); text != "" {
		os.Exit(runMember(text))
	}
}

func runMember(text string) int {
	out := &reporter{encoder: json.NewEncoder(os.Stdout)}
	var spec memberSpec
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		out.failed(err)
		return 1
	}
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	go func() {
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			if strings.TrimSpace(lines.Text()) == "leave" {
				leave()
			}
		}
		if ctx.Err() == nil {
			os.Exit(1) // The test is gone.
		}
	}()
	run := memberClients[spec.Client]
	if run == nil || spec.Consumer && !consumerClients[spec.Client] {
		out.failed(fmt.Errorf("no client %q", spec.Client))
		return 1
	}
	if err := run(ctx, spec, out); err != nil {
		out.failed(err)
		return 1
	}
	out.report(memberReport{Event: eventLeft})
	return 0
}

// reporter writes what a member has to say. A line is in the pipe when report
// returns, so a crash cannot take it back.
type reporter struct {
	mu      sync.Mutex
	encoder *json.Encoder
}

func (r *reporter) report(m memberReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.encoder.Encode(m); err != nil {
		os.Exit(1)
	}
}

// partitions reports an event of partitions by topic. When some come a member says so
// once they are its own, and when they go before it lets the broker know: what two say
// they have at the same time, they have at the same time.
func (r *reporter) partitions(event string, generation int32, partitions map[string][]int32) {
	// A client that was thrown out meanwhile says -1.
	m := memberReport{Event: event, Generation: max(generation, 0), At: time.Now().UnixNano()}
	if len(partitions) == 0 {
		r.report(m) // It took part in a rebalance all the same.
	}
	for _, m.Topic = range slices.Sorted(maps.Keys(partitions)) {
		m.Partitions = partitions[m.Topic]
		r.report(m)
	}
}

func (r *reporter) records(topic string, partition int32, offsets ...int64) {
	r.report(memberReport{Event: eventRecords, Topic: topic, Partition: partition, Offsets: offsets, At: time.Now().UnixNano()})
}

func (r *reporter) failed(err error) {
	r.report(memberReport{Event: eventFailed, Text: err.Error()})
}

func (r *reporter) note(format string, args ...any) {
	r.report(memberReport{Event: eventNote, Text: fmt.Sprintf(format, args...)})
}
