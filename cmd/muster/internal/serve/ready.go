package serve

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"

	"muster/internal/broker"
)

// readiness is what --ready prints. Programs that start a broker read it: fields are added,
// but none is renamed or dropped.
type readiness struct {
	Listeners []readyListener `json:"listeners"`
	HTTP      string          `json:"http"` // empty if it answers none
	PID       int             `json:"pid"`
	Version   string          `json:"version"`
}

// readyListener is a listener: where it listens, and what clients are told.
type readyListener struct {
	Name       string `json:"name"`
	Address    string `json:"address"`
	Advertised string `json:"advertised"`
}

// printReady prints one line about a broker to which clients can connect.
func printReady(w io.Writer, b *broker.Broker, version string) error {
	r := readiness{HTTP: b.HTTPURL(), PID: os.Getpid(), Version: version}
	addresses := b.Addrs()
	for i, e := range b.Advertised() {
		r.Listeners = append(r.Listeners, readyListener{e.Listener, addresses[i], net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port)))})
	}
	return json.NewEncoder(w).Encode(r)
}

// notifyEnv names the socket at which systemd waits for services of Type=notify.
const notifyEnv = "NOTIFY_SOCKET"

// notify tells systemd of a state, as sd_notify(3) does, if it is systemd that started us.
func notify(state string) error {
	name := os.Getenv(notifyEnv)
	if name == "" || runtime.GOOS != "linux" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("tell systemd %s: %w", state, err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(state)); err != nil {
		return fmt.Errorf("tell systemd %s: %w", state, err)
	}
	return nil
}
