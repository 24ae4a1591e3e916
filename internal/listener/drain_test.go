package listener

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/protocol"
)

// Who has had no answer yet must not see an ordinary end: some clients take that for a
// broker that wants them to log in, and lose what they wanted to send.
func TestShutdownResetsWhoHasHadNoAnswer(t *testing.T) {
	s, addr := start(t, Options{}, echo)
	silent, greeted, spoke := dial(t, addr), dial(t, addr), dial(t, addr)
	versions := []byte{0, byte(kmsg.ApiVersions)}
	for _, c := range []net.Conn{greeted, spoke} {
		sendFrame(t, c, versions)
		readFrame(t, c)
	}
	sendFrame(t, spoke, []byte("x"))
	readFrame(t, spoke)
	for s.Connections() < 3 {
		<-time.After(time.Millisecond)
	}
	s.Shutdown(t.Context())
	if _, err := spoke.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("who had an answer sees %v", err)
	}
	if _, err := silent.Read(make([]byte, 1)); err == nil || err == io.EOF {
		t.Errorf("who had none sees %v, want a reset", err)
	}
	if _, err := greeted.Read(make([]byte, 1)); err == nil || err == io.EOF {
		t.Errorf("who was only told the versions sees %v, want a reset", err)
	}
}

// A connection that comes just when the server begins to shut down is to try again; one above a
// limit is told of an ordinary end.
func TestWhoComesWhileTheServerShutsDownSeesAReset(t *testing.T) {
	for name, draining := range map[string]bool{"shutting down": true, "full": false} {
		t.Run(name, func(t *testing.T) {
			s := NewServer(Options{Logger: slog.New(slog.DiscardHandler)}) // It has room for none.
			s.draining.Store(draining)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			must(t, err)
			c := dial(t, l.Addr().String())
			var accepts sync.WaitGroup
			accepts.Go(func() { s.accept("L", l, nil, nil) })
			_, err = c.Read(make([]byte, 1))
			must(t, l.Close())
			accepts.Wait()
			assert.Error(t, err, "it reads")
			assert.Equal(t, err == io.EOF, !draining, "it sees an ordinary end (%v)", err)
		})
	}
}

// Whose first answer is still to come when the time is over has had none, though its request
// was taken.
func TestShutdownThatCutsOffResetsWhoHasHadNoAnswer(t *testing.T) {
	taken := make(chan *protocol.Response, 2)
	s, addr := start(t, Options{}, func(ctx context.Context, frame []byte) (*protocol.Response, error) {
		if string(frame) == "now" {
			return echo(ctx, frame)
		}
		resp := protocol.NewPending()
		taken <- resp
		return resp, nil
	})
	waits, spoke := dial(t, addr), dial(t, addr)
	sendFrame(t, spoke, []byte("now"))
	readFrame(t, spoke)
	sendFrame(t, spoke, []byte("later"))
	sendFrame(t, waits, []byte("later"))
	answers := []*protocol.Response{<-taken, <-taken}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	done := make(chan struct{})
	go func() {
		s.Shutdown(over)
		close(done)
	}()
	if _, err := spoke.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("who had an answer sees %v", err)
	}
	if _, err := waits.Read(make([]byte, 1)); err == nil || err == io.EOF {
		t.Errorf("who had none sees %v, want a reset", err)
	}
	for _, resp := range answers {
		resp.Complete(&protocol.Request{}, kmsg.NewPtrHeartbeatResponse())
	}
	<-done
}

// A broker that has no answer at present, since it leaves, is not taken for one that wants a
// login, either.
func TestWhoIsToTryAgainSeesAReset(t *testing.T) {
	_, addr := start(t, Options{}, func(ctx context.Context, frame []byte) (*protocol.Response, error) {
		if string(frame) == "away" {
			return nil, fmt.Errorf("no broker: %w", protocol.ErrAway)
		}
		return echo(ctx, frame)
	})
	first, later := dial(t, addr), dial(t, addr)
	sendFrame(t, later, []byte("x"))
	readFrame(t, later)
	for _, c := range []net.Conn{first, later} {
		sendFrame(t, c, []byte("away"))
	}
	if _, err := first.Read(make([]byte, 1)); err == nil || err == io.EOF {
		t.Errorf("who had no answer sees %v, want a reset", err)
	}
	if _, err := later.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("who had an answer sees %v", err)
	}
}
