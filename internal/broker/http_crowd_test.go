package broker_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"muster/internal/assert"
	"muster/internal/auth/sasl"
	"muster/internal/broker"
	"muster/internal/web"
)

// asksFrom sends a request from an address of this machine, and returns the code of the
// answer, 0 for none.
func asksFrom(ip, addr, path string, change ...func(*http.Request)) int {
	client := clientAt(ip)
	defer client.CloseIdleConnections()
	return asksWith(client, addr, path, change...)
}

// clientAt is a client at an address of this machine.
func clientAt(ip string) *http.Client {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
	return &http.Client{Timeout: long, Transport: &http.Transport{DialContext: dialer.DialContext}}
}

func asksWith(client *http.Client, addr, path string, change ...func(*http.Request)) int {
	req, err := http.NewRequest(http.MethodGet, "http://"+addr+path, http.NoBody)
	if err != nil {
		return 0
	}
	for _, c := range change {
		c(req)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0
	}
	return resp.StatusCode
}

// crowd opens connections from an address that say something, and no more.
func crowd(t *testing.T, ip, addr string, size int, text string) {
	t.Helper()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
	for range size {
		c, err := dialer.DialContext(t.Context(), "tcp", addr)
		must(t, err)
		t.Cleanup(func() { _ = c.Close() })
		_, _ = io.WriteString(c, text) // The broker may have hung up already.
	}
}

// otherAddress is an address of this machine besides 127.0.0.1.
func otherAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Skip("this system has one loopback address only")
	}
	_ = l.Close()
	return "127.0.0.2"
}

// Hundreds who send a request slowly, or only part of one, do not keep anyone else out.
func TestManySlowRequestsDoNotShutOutHealthMetricsOrPeople(t *testing.T) {
	other := otherAddress(t)
	head := "POST " + web.Prefix + "/session HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 4000\r\n"
	for name, text := range map[string]string{
		"bodies":           head + "\r\n{",
		"bodies of no one": "GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000\r\n\r\n{",
		"headers":          head,
		"connections":      "",
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			b := startSASL(t, map[string]string{"muster.http.listener": "127.0.0.1:0"})
			crowd(t, "127.0.0.1", b.HTTPAddr(), 300, text)
			answered := map[string]int{}
			const times = 10
			for range times {
				for _, path := range []string{"/healthz", "/metrics", web.Prefix + "/session"} {
					if asksFrom(other, b.HTTPAddr(), path) == http.StatusOK {
						answered[path]++
					}
				}
			}
			for _, path := range []string{"/healthz", "/metrics", web.Prefix + "/session"} {
				if answered[path] != times {
					t.Errorf("%s was answered %d of %d times", path, answered[path], times)
				}
			}
			// Where they are it may be taken for one of them now and then.
			eventually(t, "health from where they are", func(context.Context) error {
				if code := asksFrom("127.0.0.1", b.HTTPAddr(), "/healthz"); code != http.StatusOK {
					return fmt.Errorf("it is %d", code)
				}
				return nil
			})
		})
	}
}

// Who guesses passwords does not keep others from logging in.
func TestManyWrongLoginsDoNotShutOutRightOnes(t *testing.T) {
	other := otherAddress(t)
	b := startSASL(t, map[string]string{"muster.http.listener": "127.0.0.1:0"})
	const times = 4
	for i := range times {
		must(t, b.SetPassword(t.Context(), fmt.Sprint("user-", i), "right", sasl.SHA256))
	}
	assert.MustEqual(t, asksFrom("127.0.0.1", b.HTTPAddr(), web.Prefix+"/groups", basic("ann", "anns")), http.StatusOK, "ann gets")
	guessHTTP(t, "127.0.0.1", b, 40)
	// On a busy machine an answer may not be made in time; a second one is.
	lets := func(from, name, password string) bool {
		for range 3 {
			if asksFrom(from, b.HTTPAddr(), web.Prefix+"/groups", basic(name, password)) == http.StatusOK {
				return true
			}
		}
		return false
	}
	good, known := 0, 0
	for i := range times {
		if lets(other, fmt.Sprint("user-", i), "right") {
			good++
		}
		// A password that is another one by now is not remembered: it has to be derived.
		password := fmt.Sprint("another-", i)
		for _, h := range []sasl.Hash{sasl.SHA256, sasl.SHA512} {
			must(t, b.SetPassword(t.Context(), "ann", password, h))
		}
		if lets("127.0.0.1", "ann", password) {
			known++
		}
	}
	if good != times || known != times {
		t.Errorf("%d of %d right logins from elsewhere succeeded, %d of %d of one who was let in before", good, times, known, times)
	}
}

// guessHTTP has many try passwords, each a wrong one after another, until the test ends.
func guessHTTP(t *testing.T, ip string, b *broker.Broker, size int) {
	t.Helper()
	var all sync.WaitGroup
	var over atomic.Bool
	tried := make(chan struct{}, size)
	for i := range size {
		all.Go(func() {
			client := clientAt(ip)
			defer client.CloseIdleConnections()
			for n := 0; !over.Load(); n++ {
				asksWith(client, b.HTTPAddr(), web.Prefix+"/groups", basic(fmt.Sprintf("user-%d", (i+n)%50), fmt.Sprint("wrong", i, n)))
				select {
				case tried <- struct{}{}:
				default:
				}
			}
		})
	}
	t.Cleanup(func() {
		over.Store(true)
		all.Wait()
	})
	for range size {
		<-tried
	}
}
