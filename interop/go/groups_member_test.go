package interop

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
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

	// Consumer has it join a consumer group (KIP-848), whose assignor is one of the
	// broker's, and report by topic. Addr may then name several brokers. With a
	// pattern it reads the topics that match it, instead of one.
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
	Topic      string  `json:"topic,omitempty"` // consumer groups only
	At         int64   `json:"at,omitempty"`    // when it was so, in nanoseconds; consumer groups only
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
	if spec.Consumer {
		run = consumerClients[spec.Client]
	}
	if run == nil {
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

func (r *reporter) assigned(generation int32, partitions []int32) {
	// A client that was thrown out meanwhile says -1.
	r.report(memberReport{Event: eventAssigned, Generation: max(generation, 0), Partitions: partitions})
}

func (r *reporter) revoked(partitions []int32) {
	r.report(memberReport{Event: eventRevoked, Partitions: partitions})
}

func (r *reporter) lost(partitions []int32) {
	r.report(memberReport{Event: eventLost, Partitions: partitions})
}

func (r *reporter) record(partition int32, offsets ...int64) {
	r.report(memberReport{Event: eventRecords, Partition: partition, Offsets: offsets})
}

func (r *reporter) failed(err error) {
	r.report(memberReport{Event: eventFailed, Text: err.Error()})
}

func (r *reporter) note(format string, args ...any) {
	r.report(memberReport{Event: eventNote, Text: fmt.Sprintf(format, args...)})
}
