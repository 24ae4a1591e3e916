package interop

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// attack is run again and again, by several clients at a time.
type attack struct {
	name    string
	clients int
	run     func(context.Context, *attacker)
}

// attackPhases follow one another. Connections that are held go on throughout.
var (
	heldConnections = []attack{
		{"1,000 half-open connections", 1, holdHalfOpen},
		{"50 connections that never read", 1, neverRead},
		{"2,000 idle connections", 1, holdIdle},
	}
	attackPhases = [][]attack{{
		{"random bytes", 1, sendRandomBytes},
		{"impossible lengths", 1, sendImpossibleLengths},
		{"frames cut short", 1, sendCutFrames},
		{"unknown keys and versions", 1, sendUnknown},
		{"mutated requests of every key and version", 2, sendMutated},
		{"corrupt batches", 1, sendCorruptBatches},
		{"frames that trickle", 1, sendTrickle},
	}, {
		{"compressed bombs", 4, sendBombs},
		{"look-ups of timestamps in compressed bombs", 4, lookUpInBombs},
		{"large frames of garbage", 4, sendLargeFrames},
	}}
)

// dropAfter is how long an attacker waits for an answer before it leaves.
const dropAfter = 300 * time.Millisecond

// strike sends bytes and reads what comes back for a moment.
func (a *attacker) strike(ctx context.Context, frame []byte) {
	a.exchange(ctx, frame, math.MaxInt64, dropAfter)
}

// exchange sends bytes and reads so many, until the connection ends or patience does.
func (a *attacker) exchange(ctx context.Context, frame []byte, most int64, patience time.Duration) {
	c, ok := a.connect(ctx)
	if !ok {
		return
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := c.Write(frame); err == nil {
		_, _ = io.CopyN(io.Discard, c, most)
	}
}

// mustClose sends bytes after which the broker has to close the connection.
func (a *attacker) mustClose(ctx context.Context, what string, frame []byte) {
	c, ok := a.connect(ctx)
	if !ok {
		return
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(goodPatience))
	if _, err := c.Write(frame); err != nil {
		return // It was closed already.
	}
	if _, err := io.ReadAll(c); errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil {
		a.fail(fmt.Errorf("the broker keeps a connection open after %s", what))
	}
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return b
}

// framed puts a length before bytes.
func framed(b []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}

func sendRandomBytes(ctx context.Context, a *attacker) {
	b := randomBytes(1 + rand.IntN(1<<rand.IntN(16)))
	if chance(2) {
		b = framed(b)
	}
	a.strike(ctx, b)
}

func sendImpossibleLengths(ctx context.Context, a *attacker) {
	const limit = 100 << 20 // socket.request.max.bytes
	for _, n := range []int32{math.MaxInt32, limit + 1, -1, math.MinInt32, 0, 1, 7} {
		head := binary.BigEndian.AppendUint32(nil, uint32(n))
		a.mustClose(ctx, fmt.Sprintf("a frame of %d bytes", n), append(head, make([]byte, 64)...))
	}
	a.mustClose(ctx, "an HTTP request", []byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"))
	a.mustClose(ctx, "a TLS greeting", append([]byte{0x16, 3, 1, 2, 0, 1, 0}, randomBytes(512)...))
}

func sendCutFrames(ctx context.Context, a *attacker) {
	frame := request(pick(a.apis))
	a.strike(ctx, frame[:rand.IntN(len(frame))])
}

func sendUnknown(ctx context.Context, a *attacker) {
	served := map[int16]bool{}
	for _, api := range a.apis {
		served[api.ApiKey] = true
	}
	header := func(key, version int16) []byte {
		b := binary.BigEndian.AppendUint16(nil, uint16(key))
		b = binary.BigEndian.AppendUint16(b, uint16(version))
		b = binary.BigEndian.AppendUint32(b, rand.Uint32())
		return framed(append(b, randomBytes(rand.IntN(100))...))
	}
	if key := int16(rand.Uint32()); !served[key] {
		a.mustClose(ctx, fmt.Sprintf("API key %d", key), header(key, 0))
	}
	api := pick(a.apis)
	if api.ApiKey != kmsg.ApiVersions.Int16() {
		version := api.MaxVersion + 1 + int16(rand.IntN(100))
		a.mustClose(ctx, fmt.Sprintf("version %d of API key %d", version, api.ApiKey), header(api.ApiKey, version))
	}
}

func sendMutated(ctx context.Context, a *attacker) {
	for _, api := range a.apis {
		for version := api.MinVersion; version <= api.MaxVersion && ctx.Err() == nil; version++ {
			a.talk(ctx, mutate(requestOf(api.ApiKey, version)), dropAfter)
		}
	}
}

// talk sends a frame and leaves as soon as it is answered, or after a while.
func (a *attacker) talk(ctx context.Context, frame []byte, patience time.Duration) {
	a.exchange(ctx, frame, 4, patience)
}

func sendCorruptBatches(ctx context.Context, a *attacker) {
	b := mutateBody(batch{values: values("corrupt", 1+rand.IntN(50)), attributes: int16(rand.IntN(5))}.encode())
	if len(b) >= batchCovered && chance(2) {
		seal(b) // So that the checksum does not give it away.
	}
	topic := pick([]string{"prey", "compacted"})
	a.talk(ctx, formatter.AppendRequest(nil, produceRequest(topic, 0, int16(rand.IntN(3)-1), b), 1), dropAfter)
}

func sendBombs(ctx context.Context, a *attacker) {
	a.talk(ctx, formatter.AppendRequest(nil, produceRequest("compacted", 0, -1, pick(bombs())), 1), goodPatience)
}

// lookUpInBombs asks for a timestamp that the header of a batch promises, so
// that the broker has to look at its records.
func lookUpInBombs(ctx context.Context, a *attacker) {
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version, req.ReplicaID = 7, -1
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = "bombed"
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.Timestamp, p.CurrentLeaderEpoch = int32(rand.IntN(len(bombs()))), bombTime+1, -1
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	a.talk(ctx, formatter.AppendRequest(nil, req, 1), goodPatience)
}

func sendLargeFrames(ctx context.Context, a *attacker) {
	garbage := make([]byte, 32<<20)
	copy(garbage, request(pick(a.apis))[4:])
	c, ok := a.connect(ctx)
	if !ok {
		return
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	if _, err := c.Write(framed(garbage)); err == nil {
		_ = c.SetReadDeadline(time.Now().Add(dropAfter))
		_, _ = io.CopyN(io.Discard, c, 4)
	}
}

func sendTrickle(ctx context.Context, a *attacker) {
	c, ok := a.connect(ctx)
	if !ok {
		return
	}
	defer c.Close()
	for _, b := range request(pick(a.apis)) {
		if _, err := c.Write([]byte{b}); err != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// hold opens connections, does something on each, and keeps them all until the
// end.
func (a *attacker) hold(ctx context.Context, n int, begin func(net.Conn)) {
	var conns []net.Conn
	for range n {
		c, ok := a.connect(ctx)
		if !ok {
			break
		}
		conns = append(conns, c)
		begin(c)
	}
	<-ctx.Done()
	for _, c := range conns {
		c.Close()
	}
}

func holdIdle(ctx context.Context, a *attacker) { a.hold(ctx, 2000, func(net.Conn) {}) }

// holdHalfOpen announces frames and sends only the beginning.
func holdHalfOpen(ctx context.Context, a *attacker) {
	a.hold(ctx, 1000, func(c net.Conn) {
		announced := 1 + rand.Uint32N(100<<20)
		_, _ = c.Write(append(binary.BigEndian.AppendUint32(nil, announced), randomBytes(rand.IntN(min(int(announced), 1000)))...))
	})
}

// neverRead asks for a lot, many times, and reads nothing.
func neverRead(ctx context.Context, a *attacker) {
	metadata := kmsg.NewPtrMetadataRequest()
	metadata.Version = 12
	var requests []byte
	for i := range 500 {
		for _, req := range []kmsg.Request{
			fetchRequest("bulk", 0, 0), metadata, produceRequest("prey", 0, -1, batch{values: []string{"x"}}.encode()),
		} {
			requests = append(requests, formatter.AppendRequest(nil, req, int32(i))...)
		}
	}
	a.hold(ctx, 50, func(c net.Conn) {
		_ = c.SetWriteDeadline(time.Now().Add(dropAfter))
		_, _ = c.Write(requests)
	})
}
