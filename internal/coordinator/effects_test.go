package coordinator

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"weak"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group"
	"muster/internal/journal"
	"muster/internal/machine"
)

// errand is a core that for every request sends one on, or does a task, and
// answers with what came of it.
type errand struct {
	task    bool
	waiting map[uint64]machine.RequestID
}

func (e *errand) Replay(machine.Stored) {}

func (e *errand) Step(in machine.Input) (fx machine.Effects) {
	answer := func(id uint64, code int16) {
		resp := kmsg.NewPtrHeartbeatResponse()
		resp.ErrorCode = code
		fx.Replies = append(fx.Replies, machine.Reply{ID: e.waiting[id], Msg: resp})
	}
	switch ev := in.Event.(type) {
	case machine.Request:
		id := uint64(ev.ID)
		e.waiting[id] = ev.ID
		if e.task {
			fx.Tasks = []machine.Task{{ID: id, Run: func() any { return int16(7) }}}
		} else {
			fx.Sends = []machine.Send{{ID: id, To: 3, Msg: ev.Msg}}
		}
	case machine.Sent:
		code := int16(-2)
		if ev.Err == nil {
			code = ev.Msg.(*kmsg.HeartbeatResponse).ErrorCode
		}
		answer(ev.ID, code)
	case machine.TaskDone:
		answer(ev.ID, ev.Result.(int16))
	}
	return fx
}

func errandOptions(task bool, send func(context.Context, int32, kmsg.Request) (kmsg.Response, error)) Options {
	return Options{
		Core: machine.Definition{
			Name: "errands", New: func() machine.Core { return &errand{task: task, waiting: map[uint64]machine.RequestID{}} },
			Fail: func(r kmsg.Request, err *kerr.Error) kmsg.Response {
				resp := r.ResponseKind().(*kmsg.HeartbeatResponse)
				resp.ErrorCode = err.Code
				return resp
			},
			NeedsRandom: func(kmsg.Request) bool { return false },
		},
		Log: func(int32) Log { return &gatedLog{} }, Logger: slog.New(slog.DiscardHandler), Send: answering(send),
	}
}

// answering has done called with what a function returns.
func answering(send func(context.Context, int32, kmsg.Request) (kmsg.Response, error)) func(context.Context, int32, kmsg.Request, func(kmsg.Response, error)) {
	if send == nil {
		return nil
	}
	return func(ctx context.Context, node int32, req kmsg.Request, done func(kmsg.Response, error)) {
		done(send(ctx, node, req))
	}
}

func beatCode(r kmsg.Response) int16 { return r.(*kmsg.HeartbeatResponse).ErrorCode }

func TestSendsAndTasksAreCarriedOutAndTheirOutcomeComesBack(t *testing.T) {
	var mu sync.Mutex
	to := map[int32]int{}
	send := func(_ context.Context, node int32, req kmsg.Request) (kmsg.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		to[node]++
		resp := req.ResponseKind().(*kmsg.HeartbeatResponse)
		resp.ErrorCode = 5
		return resp, nil
	}
	failing := func(context.Context, int32, kmsg.Request) (kmsg.Response, error) {
		return nil, errors.New("not reached")
	}
	for _, c := range []struct {
		what string
		task bool
		send func(context.Context, int32, kmsg.Request) (kmsg.Response, error)
		want int16
	}{{"a send", false, send, 5}, {"a send that fails", false, failing, -2}, {"a send without others", false, nil, -2}, {"a task", true, nil, 7}} {
		t.Run(c.what, func(t *testing.T) {
			co := New(errandOptions(c.task, c.send))
			defer co.Close()
			co.Lead([]int32{0})
			if code := beatCode(co.Do(t.Context(), "g", Client{}, kmsg.NewPtrHeartbeatRequest())); code != c.want {
				t.Errorf("code %d, should be %d", code, c.want)
			}
		})
	}
	if to[3] != 1 {
		t.Errorf("sent to %v", to)
	}
}

// teller is a core that tells of something with every request, in lists that it uses again.
type teller struct {
	fx machine.Effects
	n  int64
}

func (c *teller) Replay(machine.Stored) {}

func (c *teller) Step(in machine.Input) machine.Effects {
	r, ok := in.Event.(machine.Request)
	if !ok {
		return machine.Effects{}
	}
	c.n++
	c.fx = machine.Effects{
		Replies: []machine.Reply{{ID: r.ID, Msg: kmsg.NewPtrHeartbeatResponse()}},
		Notes:   append(c.fx.Notes[:0], &journal.Txn{Was: journal.Producer{ID: c.n}}, group.Committed{{Offset: c.n}}),
	}
	return c.fx
}

func TestNotesOfAnyKindArePassedOn(t *testing.T) {
	var told []int64
	opts := errandOptions(false, nil)
	opts.Core.New = func() machine.Core { return &teller{} }
	opts.Notes = func(_ int32, notes []machine.Note) {
		told = append(told, notes[0].(*journal.Txn).Was.ID, notes[1].(group.Committed)[0].Offset)
	}
	c := New(opts)
	defer c.Close()
	c.Lead([]int32{0})
	for range 3 {
		c.Do(t.Context(), "g", Client{}, kmsg.NewPtrHeartbeatRequest())
	}
	if !slices.Equal(told, []int64{1, 1, 2, 2, 3, 3}) {
		t.Errorf("told are %v", told)
	}
}

// The end of a shard gives up its sends, and waits for them.
func TestTheEndGivesUpSends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended bool
		c := New(errandOptions(false, func(ctx context.Context, _ int32, _ kmsg.Request) (kmsg.Response, error) {
			<-ctx.Done()
			ended = true
			return nil, ctx.Err()
		}))
		c.Lead([]int32{0})
		synctest.Wait()
		waiting := async(t, c, kmsg.NewPtrHeartbeatRequest())
		c.Close()
		if code := beatCode(<-waiting); code != kerr.NotCoordinator.Code || !ended {
			t.Errorf("code %d, the send has ended: %v", code, ended)
		}
	})
}

// What a handler does after its outcome is known keeps no one: it may wait for
// whoever ends the shard.
func TestTheEndWaitsForTheOutcomeOfASendOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, locked := errandOptions(false, nil), make(chan struct{})
		opts.Send = func(ctx context.Context, _ int32, _ kmsg.Request, done func(kmsg.Response, error)) {
			context.AfterFunc(ctx, func() { done(nil, ctx.Err()) })
			<-locked
		}
		c := New(opts)
		c.Lead([]int32{0})
		synctest.Wait()
		waiting := async(t, c, kmsg.NewPtrHeartbeatRequest())
		c.Close()
		if code := beatCode(<-waiting); code != kerr.NotCoordinator.Code {
			t.Errorf("code %d", code)
		}
		close(locked)
	})
}

// The answer to someone who asked for everything may be large. The shard does not
// keep it until someone asks for something else.
func TestAnAnswerIsNotKept(t *testing.T) {
	inBubble(t, &gatedLog{}, func(t *testing.T, c *Coordinator) {
		becomeMember(t, c)
		ask := func(req kmsg.Request) weak.Pointer[kmsg.DescribeGroupsResponse] {
			resp := c.Do(t.Context(), "g", Client{}, req).(*kmsg.DescribeGroupsResponse)
			if len(resp.Groups) != 1 || len(resp.Groups[0].Members) != 1 {
				t.Fatalf("the answer is %+v", resp)
			}
			return weak.Make(resp)
		}
		req := kmsg.NewPtrDescribeGroupsRequest()
		req.Version, req.Groups = 5, []string{"g"}
		answer := ask(req)
		runtime.GC()
		if answer.Value() != nil {
			t.Error("the answer is kept")
		}
		runtime.KeepAlive(c)
	})
}
