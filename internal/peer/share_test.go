package peer

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/machine"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/share/requests"
)

// coordinates has the client know who leads each partition of __share_group_state.
func (w *world) coordinates(f *fake, leaders ...int32) {
	edit := metadata.NewImage(&config.Broker{}).Edit()
	edit.PutBroker(f.broker())
	t := metadata.Topic{Name: metadata.ShareStateTopic}
	for _, l := range leaders {
		t.Partitions = append(t.Partitions, metadata.Partition{Leader: l})
	}
	edit.PutTopic(t)
	w.image.Store(edit.Image())
}

// write is a request for the partitions 0 to n-1 of a topic.
func write(n int32) *kmsg.WriteShareGroupStateRequest {
	req := kmsg.NewPtrWriteShareGroupStateRequest()
	req.GroupID, req.Topics = "g", []kmsg.WriteShareGroupStateRequestTopic{{}}
	for i := range n {
		p := kmsg.NewWriteShareGroupStateRequestTopicPartition()
		p.Partition, p.DeliveryCompleteCount = i, i
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, p)
	}
	return req
}

func writeCodes(resp kmsg.Response) (out []int16) {
	for i, p := range resp.(*kmsg.WriteShareGroupStateResponse).Topics[0].Partitions {
		if p.Partition != int32(i) {
			return nil
		}
		out = append(out, p.ErrorCode)
	}
	return out
}

// ofShard is which partitions of the request above belong to a shard, of two.
func ofShard(n, shard int32) (out []int32) {
	for i := range n {
		if (requests.Key{Group: "g", Partition: i}).Shard(2) == shard {
			out = append(out, i)
		}
	}
	return out
}

func TestShareStateIsAskedOfEachCoordinator(t *testing.T) {
	f := newFake(t, func(f *fake) { f.versions[85] = [2]int16{0, 1} })
	w := newWorld(t)
	w.coordinates(f, 1, 2)
	mine := make(chan kmsg.Request, 10)
	w.own = func(_ context.Context, req kmsg.Request) (kmsg.Response, error) {
		mine <- req
		return requests.Failed(req, kerr.FencedStateEpoch), nil
	}
	ways := map[string]func(kmsg.Request) kmsg.Response{
		"ShareState": func(req kmsg.Request) kmsg.Response { return w.ShareState(t.Context(), req) },
		"Send": func(req kmsg.Request) kmsg.Response {
			resp, err := w.Do(t.Context(), machine.ShareCoordinator, req)
			assert.NoError(t, err)
			return resp
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			const n = 20
			answer := make(chan kmsg.Response, 1)
			go func() { answer <- way(write(n)) }()
			own, theirs := (<-mine).(*kmsg.WriteShareGroupStateRequest), <-f.requests
			other := theirs.Request.(*kmsg.WriteShareGroupStateRequest)
			assert.True(t, len(own.Topics[0].Partitions) == len(ofShard(n, 0)) && len(other.Topics[0].Partitions) == len(ofShard(n, 1)), "%d and %d", len(own.Topics[0].Partitions), len(other.Topics[0].Partitions))
			assert.True(t, own.Version == 1 && other.Version == 1 && other.GroupID == "g", "versions %d and %d", own.Version, other.Version)
			p := other.Topics[0].Partitions[0]
			assert.Equal(t, p.DeliveryCompleteCount, p.Partition, "what is written")
			theirs.answer(requests.Failed(other, nil))
			want := make([]int16, n)
			for _, i := range ofShard(n, 0) {
				want[i] = kerr.FencedStateEpoch.Code
			}
			assert.DeepEqual(t, writeCodes(<-answer), want, "codes")
		})
	}
}

func TestShareStateIsAskedForAgainWhereItsCoordinatorMoved(t *testing.T) {
	f := newFake(t, func(f *fake) { f.versions[85] = [2]int16{0, 1} })
	w := newWorld(t)
	w.coordinates(f, 1, 2)
	asked := 0
	w.own = func(_ context.Context, req kmsg.Request) (kmsg.Response, error) {
		asked++
		if n := len(req.(*kmsg.WriteShareGroupStateRequest).Topics[0].Partitions); n != len(ofShard(20, int32(asked-1))) {
			t.Errorf("%d partitions the %d. time", n, asked)
		}
		return requests.Failed(req, nil), nil
	}
	answer := make(chan kmsg.Response, 1)
	go func() { answer <- w.ShareState(t.Context(), write(20)) }()
	theirs := <-f.requests
	w.coordinates(f, 1, 1)
	theirs.answer(requests.Failed(theirs.Request, kerr.NotCoordinator))
	assert.DeepEqual(t, writeCodes(<-answer), make([]int16, 20), "codes")
	assert.Equal(t, asked, 2, "how often this broker was asked")
}

func TestShareStateIsAskedForUntilTheTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.image.Store(nil)
		var logged bytes.Buffer
		w.opts.Logger = slog.New(slog.NewTextHandler(&logged, nil))
		began, created := time.Now(), 0
		w.opts.CreateTopic = func(context.Context, string) error {
			created++
			return errors.New("the store is away")
		}
		assert.DeepEqual(t, writeCodes(w.ShareState(t.Context(), write(1))), []int16{kerr.CoordinatorNotAvailable.Code}, "codes")
		assert.Equal(t, time.Since(began), requestTimeout, "time")
		assert.True(t, created > 5 && created < 30, "the topic is created %d times", created)
		w.ShareState(t.Context(), write(1))
		assert.Equal(t, strings.Count(logged.String(), "\n"), 1, "lines in the log")
	})
}

// A coordinator that ends waits for what it has sent, and whoever creates a topic may wait for
// the coordinator.
func TestWhoAsksForShareStateDoesNotWaitForATopic(t *testing.T) {
	w := newWorld(t)
	w.image.Store(nil)
	busy, begun := make(chan struct{}), make(chan struct{})
	w.opts.CreateTopic = func(_ context.Context, name string) error {
		assert.Equal(t, name, metadata.ShareStateTopic, "topic")
		close(begun)
		<-busy
		return nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan kmsg.Response, 1)
	go w.Send(ctx, machine.ShareCoordinator, write(1), func(resp kmsg.Response, err error) {
		assert.NoError(t, err)
		answer <- resp
	})
	<-begun
	cancel()
	assert.DeepEqual(t, writeCodes(<-answer), []int16{kerr.CoordinatorNotAvailable.Code}, "codes")
	close(busy)
}

func TestWhoAsksForShareStateDoesNotWaitForThisBrokerForLongerThanForOthers(t *testing.T) {
	f := newFake(t)
	w := newWorld(t)
	w.coordinates(f, 1)
	busy, begun := make(chan struct{}), make(chan struct{})
	w.own = func(_ context.Context, req kmsg.Request) (kmsg.Response, error) {
		close(begun)
		<-busy
		return requests.Failed(req, nil), nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan kmsg.Response, 1)
	go func() { answer <- w.ShareState(ctx, write(1)) }()
	<-begun
	cancel()
	select {
	case resp := <-answer:
		assert.DeepEqual(t, writeCodes(resp), []int16{kerr.CoordinatorNotAvailable.Code}, "codes")
	case <-time.After(10 * time.Second):
		t.Error("it waits")
	}
	close(busy)
}
