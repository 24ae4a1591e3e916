package listener

import (
	"context"
	"io"
	"log/slog"
	"net"
	"testing"

	"muster/internal/protocol"
)

// counting answers how many frames the connection has sent before.
type counting struct{}

func (counting) Handle(_ context.Context, c *Client, _ []byte) (*protocol.Response, error) {
	place := c.Place()
	n, _ := (*place).(byte)
	*place = n + 1
	return protocol.Bare([]byte{n}), nil
}

func TestWhatIsKeptForAConnectionIsItsOwn(t *testing.T) {
	s := NewServer(Options{Handler: counting{}, Logger: slog.New(slog.DiscardHandler), MaxRequest: 1000, MaxConnections: 10, MaxPerHost: 10})
	addr, serve, err := s.Listen("L", "127.0.0.1:0", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	serve()
	t.Cleanup(func() { s.Shutdown(context.Background()) })
	one, other := dial(t, addr.String()), dial(t, addr.String())
	for want := range byte(3) {
		for _, c := range []net.Conn{one, other} {
			sendFrame(t, c, []byte("frame"))
			var answer [5]byte
			if _, err := io.ReadFull(c, answer[:]); err != nil || answer[4] != want {
				t.Errorf("%v, %v, want %d", answer, err, want)
			}
		}
	}
}
