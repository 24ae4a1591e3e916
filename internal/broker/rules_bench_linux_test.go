package broker_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth/sasl"
	"muster/internal/broker"
	"muster/internal/record"
)

// rulesSlice is how many requests are sent at a time.
const rulesSlice = 200

// BenchmarkRequestWithRules is what a small Produce or Fetch takes of the processor in the
// broker, from the socket to the socket, for a client that has logged in: without an
// authorizer, and with one and 10,000 rules, in turn. The client has a thread of its own and
// waits there for each answer, so that its part can be told from the broker's. Of the ratios
// of any two turns the median is told: how much more the broker with rules takes.
func BenchmarkRequestWithRules(b *testing.B) {
	for _, name := range []string{"produce", "fetch"} {
		b.Run(name, func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			conns := []*ruled{dialRuled(b, 0), dialRuled(b, 10_000)}
			frames := [][]byte{conns[0].frame(name), conns[1].frame(name)}
			var times [2][]float64
			var ratios []float64
			for b.Loop() {
				for i, c := range conns {
					before := brokersTime(b)
					for range rulesSlice {
						c.ask(frames[i])
					}
					times[i] = append(times[i], float64(brokersTime(b)-before)/rulesSlice)
				}
				n := len(times[0]) - 1
				ratios = append(ratios, times[1][n]/times[0][n])
			}
			b.ReportMetric(median(times[0]), "ns/none")
			b.ReportMetric(median(times[1]), "ns/rules")
			b.ReportMetric(100*(median(ratios)-1), "%more")
		})
	}
}

func median(s []float64) float64 {
	slices.Sort(s)
	return s[len(s)/2]
}

// brokersTime is how long all threads but this one have used the processor.
func brokersTime(b *testing.B) time.Duration {
	const ofProcess, ofThread = 2, 3 // CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID
	return processorTime(b, ofProcess) - processorTime(b, ofThread)
}

func processorTime(b *testing.B, clock uintptr) time.Duration {
	var at syscall.Timespec
	if _, _, err := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&at)), 0); err != 0 {
		b.Fatal(err)
	}
	return time.Duration(at.Nano())
}

// ruled is a connection whose thread waits in the system's own calls.
type ruled struct {
	b    *testing.B
	file *os.File
	fd   int // of file
	in   []byte
}

// Read implements io.Reader.
func (c *ruled) Read(p []byte) (int, error) {
	n, err := syscall.Read(c.fd, p)
	if n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}

func dialRuled(b *testing.B, rules int) *ruled {
	props := map[string]string{
		"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms": "PLAIN", "muster.store": "mem", "num.partitions": "2",
		// Otherwise what is produced would fill the memory.
		"log.retention.bytes": "1048576", "log.segment.bytes": "1048576", "log.retention.check.interval.ms": "1000",
	}
	if rules > 0 {
		props["authorizer.class.name"] = "muster"
		props["super.users"] = "User:root"
	}
	broker, err := broker.Open(b.Context(), broker.Config{Properties: props, Logger: slog.New(slog.DiscardHandler)})
	must(b, err)
	b.Cleanup(func() { _ = broker.Close() })
	for _, name := range []string{"root", "ann"} {
		must(b, broker.SetPassword(b.Context(), name, name, sasl.SHA256))
	}
	root := login(b, broker.Addr(), "root")
	create := kmsg.NewPtrCreateTopicsRequest()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "t", 2, 1
	create.Version, create.Topics = 4, append(create.Topics, topic)
	root.do(create)
	if rules > 0 {
		for _, c := range root.do(rulesFor("User:ann", rules)).(*kmsg.CreateACLsResponse).Results {
			if c.ErrorCode != 0 {
				b.Fatal(kerr.ErrorForCode(c.ErrorCode))
			}
		}
	}
	return login(b, broker.Addr(), "ann")
}

// rulesFor are rules of 1,000 users, and many for one, who needs two of them.
func rulesFor(who string, n int) *kmsg.CreateACLsRequest {
	req := kmsg.NewPtrCreateACLsRequest()
	req.Version = 3
	add := func(who, name string, pattern kmsg.ACLResourcePatternType, op kmsg.ACLOperation) {
		req.Creations = append(req.Creations, kmsg.CreateACLsRequestCreation{
			ResourceType: kmsg.ACLResourceTypeTopic, ResourceName: name, ResourcePatternType: pattern, Principal: who, Host: "*",
			Operation: op, PermissionType: kmsg.ACLPermissionTypeAllow,
		})
	}
	add(who, "t", kmsg.ACLResourcePatternTypeLiteral, kmsg.ACLOperationRead)
	add(who, "t", kmsg.ACLResourcePatternTypeLiteral, kmsg.ACLOperationWrite)
	for i := 0; len(req.Creations) < n; i++ {
		other := fmt.Sprint("User:user-", i%1000)
		add(other, fmt.Sprintf("team-%d.orders.%d", i%97, i), kmsg.ACLResourcePatternTypeLiteral, kmsg.ACLOperationRead)
		add(other, fmt.Sprintf("team-%d.app-%d.", i%97, i), kmsg.ACLResourcePatternTypePrefixed, kmsg.ACLOperationWrite)
		add(who, fmt.Sprint("t", i), kmsg.ACLResourcePatternTypePrefixed, kmsg.ACLOperationWrite)
	}
	req.Creations = req.Creations[:n]
	return req
}

// login connects, and logs in with a password that is the name.
func login(b *testing.B, addr, name string) *ruled {
	conn, err := net.Dial("tcp", addr)
	must(b, err)
	f, err := conn.(*net.TCPConn).File() // A copy, which is not waited for by Go's poller.
	must(b, err)
	_ = conn.Close()
	c := &ruled{b: b, file: f, fd: int(f.Fd()), in: make([]byte, 1<<21)}
	must(b, syscall.SetNonblock(c.fd, false))
	b.Cleanup(func() { _ = f.Close() })
	c.do(&kmsg.SASLHandshakeRequest{Version: 1, Mechanism: "PLAIN"})
	if got := c.do(&kmsg.SASLAuthenticateRequest{Version: 2, SASLAuthBytes: []byte(plain(name, name))}).(*kmsg.SASLAuthenticateResponse); got.ErrorCode != 0 {
		b.Fatal(kerr.ErrorForCode(got.ErrorCode))
	}
	return c
}

// ask sends a frame and returns the answer without its length.
func (c *ruled) ask(frame []byte) []byte {
	for len(frame) > 0 {
		n, err := syscall.Write(c.fd, frame)
		must(c.b, err)
		frame = frame[n:]
	}
	if _, err := io.ReadFull(c, c.in[:4]); err != nil {
		c.b.Fatal(err)
	}
	n := int(binary.BigEndian.Uint32(c.in))
	if _, err := io.ReadFull(c, c.in[:n]); err != nil {
		c.b.Fatal(err)
	}
	return c.in[:n]
}

func (c *ruled) do(req kmsg.Request) kmsg.Response {
	resp, err := answerTo(req, c.ask(kmsg.NewRequestFormatter().AppendRequest(nil, req, 1)))
	must(c.b, err)
	return resp
}

// frame makes a request, and sees that its answer is a good one.
func (c *ruled) frame(name string) []byte {
	batch, err := record.Build(record.PlainTemplate(), []record.Record{{Value: []byte("v")}})
	must(c.b, err)
	produce := kmsg.NewPtrProduceRequest()
	produce.Version, produce.Acks, produce.TimeoutMillis = 9, 1, 1000
	produce.Topics = []kmsg.ProduceRequestTopic{{Topic: "t", Partitions: []kmsg.ProduceRequestTopicPartition{{Records: batch}}}}
	if got := c.do(produce).(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode; got != 0 {
		c.b.Fatal(kerr.ErrorForCode(got))
	}
	var req kmsg.Request = produce
	if name == "fetch" {
		fetch := kmsg.NewPtrFetchRequest()
		fetch.Version, fetch.MaxBytes, fetch.SessionEpoch = 12, 1<<16, -1
		fetch.Topics = []kmsg.FetchRequestTopic{{Topic: "t", Partitions: []kmsg.FetchRequestTopicPartition{{CurrentLeaderEpoch: -1, LastFetchedEpoch: -1, PartitionMaxBytes: 1 << 16}}}}
		if got := c.do(fetch).(*kmsg.FetchResponse).Topics[0].Partitions[0]; got.ErrorCode != 0 || len(got.RecordBatches) == 0 {
			c.b.Fatalf("%d bytes, error %d", len(got.RecordBatches), got.ErrorCode)
		}
		req = fetch
	}
	return kmsg.NewRequestFormatter().AppendRequest(nil, req, 1)
}
