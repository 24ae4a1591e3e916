package listener

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
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
