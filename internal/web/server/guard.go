package server

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"muster/internal/web/problem"
)

// maxURI is how long path and query may be together. Names of groups are rarely longer
// than a line; those that are have to be looked at by the Kafka protocol. A list that has
// such a group can be read nevertheless: after, in which its name may be, is not counted.
const maxURI = 8 << 10

func tooLong(r *http.Request) bool {
	return len(r.RequestURI) > maxURI && len(r.RequestURI)-len(r.URL.Query().Get("after")) > maxURI
}

// guard is what every request passes: it sets the headers that keep browsers from doing
// what no one means, and refuses what comes from someone else's page.
type guard struct {
	next     http.Handler
	loopback bool // The listener is reached from this machine only.
	hosts    []string
}

// anyHost among the allowed hosts allows all.
const anyHost = "*"

func newGuard(next http.Handler, addr net.Addr, allowed []string) http.Handler {
	g := &guard{next: http.NewCrossOriginProtection().Handler(next), loopback: IsLoopback(addr)}
	for _, h := range allowed {
		g.hosts = append(g.hosts, strings.ToLower(h))
	}
	if name, err := os.Hostname(); err == nil && !g.loopback {
		g.hosts = append(g.hosts, strings.ToLower(name))
	}
	return g
}

// IsLoopback says whether an address is reached from this machine only.
func IsLoopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// ServeHTTP implements http.Handler.
func (g *guard) ServeHTTP(plain http.ResponseWriter, r *http.Request) {
	conn := heldOf(r)
	w := paced(plain, conn)
	if r.ContentLength != 0 {
		// No one wants what it brings, but it is read to its end before the next request.
		_ = w.control.SetReadDeadline(time.Now().Add(requestTimeout)) // A writer of tests has none.
		// The server must not see that the body is another: it would wait for one that is
		// far too long before it answers.
		r = r.WithContext(r.Context())
		r.Body = &timedBody{r.Body, w.control, conn}
	}
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	switch {
	case tooLong(r):
		problem.Write(w, &problem.Problem{Status: http.StatusRequestURITooLong, Code: "too_long", Message: "path and query are too long"})
	case !g.lets(r):
		// A page whose name was made to mean this address has the browser send its
		// own name here. That is all that tells it from ours.
		problem.Write(w, &problem.Problem{
			Status: http.StatusForbidden, Code: "host_not_allowed",
			Message: fmt.Sprintf("this broker is not known as %.100q; add the name to muster.http.allowed.hosts", HostOf(r.Host)),
		})
	default:
		g.next.ServeHTTP(w, r)
	}
}

// timedBody is a body that must have come by the deadline of its connection. That ends with
// the body: the server reads on to see whether the client is still there, and a deadline
// that is met then would end this request, and all others of the connection.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
	conn    *held // nil if it does not count
}

// Read implements io.Reader.
func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.conn.await(func() (int, error) { return b.ReadCloser.Read(p) })
	if errors.Is(err, io.EOF) {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// lets says whether a request may come under the name in its Host header. /healthz tells
// nothing that a page could use. /metrics tells the names of groups and topics, but those
// who scrape find the broker by names that it cannot know, of a container or a service; so
// beyond loopback, where all machines may ask for it, any name will do for what is not a
// browser: it takes one for a page to have its name mean this address.
func (g *guard) lets(r *http.Request) bool {
	switch {
	case r.URL.Path == HealthPath, g.knows(r.Host):
		return true
	case r.URL.Path == MetricsPath:
		return !g.loopback && !isBrowser(r)
	}
	return false
}

// isBrowser says whether a request has what browsers send by themselves.
func isBrowser(r *http.Request) bool {
	h := r.Header
	return strings.HasPrefix(h.Get("User-Agent"), "Mozilla/") || h.Get("Origin") != "" || h.Get("Referer") != "" || h.Get("Cookie") != "" || h.Get("Sec-Fetch-Site") != ""
}

// knows says whether the Host header names this broker. An address is no name that
// someone else could have made to mean us: it is what the browser connected to.
func (g *guard) knows(hostport string) bool {
	host := HostOf(hostport)
	if slices.Contains(g.hosts, host) || slices.Contains(g.hosts, anyHost) || IsLocalName(host) {
		return true
	}
	_, err := netip.ParseAddr(host)
	return err == nil && !g.loopback
}

// HostOf returns the name in a Host header, as it is compared.
func HostOf(hostport string) string {
	host := strings.ToLower(hostport)
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSuffix(host, "."), "["), "]")
}

// IsLocalName says whether a name means the machine that asks, wherever it is asked.
func IsLocalName(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
