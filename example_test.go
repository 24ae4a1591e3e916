package muster_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"muster"
)

// A test starts a broker of its own, which is ready in milliseconds and gone
// without a trace when it is closed.
func Example() {
	ctx := context.Background()
	broker, err := muster.Start(ctx, muster.Config{})
	if err != nil {
		panic(err)
	}
	defer broker.Close()

	client, err := kgo.NewClient(
		kgo.SeedBrokers(broker.Addr()),
		kgo.AllowAutoTopicCreation(),
		kgo.ConsumeTopics("greetings"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	if err != nil {
		panic(err)
	}
	defer client.Close()

	record := &kgo.Record{Topic: "greetings", Value: []byte("hello")}
	if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
		panic(err)
	}
	client.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
		fmt.Printf("%s at offset %d\n", r.Value, r.Offset)
	})
	// Output: hello at offset 0
}

func TestAPortThatIsTakenIsNamed(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	b, err := muster.Start(t.Context(), muster.Config{Listen: other.Addr().String()})
	if err == nil {
		b.Close()
		t.Fatal("a broker listens on a port that is taken")
	}
	if !strings.Contains(err.Error(), other.Addr().String()) || !strings.Contains(err.Error(), "in use") {
		t.Errorf("the error is %q", err)
	}
}

func TestCloseLeavesNothingBehind(t *testing.T) {
	defer goleak.VerifyNone(t)
	folder := t.TempDir()
	for _, cfg := range []muster.Config{{}, {Data: folder}, {Data: folder}} {
		b, err := muster.Start(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		// The port is free again.
		cfg.Listen = b.Addr()
		again, err := muster.Start(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
