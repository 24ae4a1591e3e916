package broker_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/assert"
	"muster/internal/broker"
	"muster/internal/web"
)

// long is how long anybody waits for a broker that is attacked.
const long = 2 * time.Minute

// speaks opens a connection to the broker's HTTP address and says something.
func speaks(t *testing.T, b *broker.Broker, text string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", b.HTTPAddr())
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(long))
	_, _ = io.WriteString(c, text) // The broker may have hung up already.
	return c
}

// codeOf returns the code that some text is answered with, 0 for none.
func codeOf(t *testing.T, b *broker.Broker, text string) int {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(speaks(t, b, text)), nil)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

func TestRequestsThatNoBrowserSends(t *testing.T) {
	b := startSASL(t, map[string]string{"muster.http.listener": "127.0.0.1:0"})
	_, cookies := people(t, b, nil, http.MethodPost, "/session", `{"user":"ann","password":"anns"}`)
	assert.MustEqual(t, len(cookies), 1, "the cookies are %v", cookies)
	known := "Host: localhost\r\nCookie: " + cookies[0].Name + "=" + cookies[0].Value + "\r\n"
	get := func(path string) string { return "GET " + path + " HTTP/1.1\r\n" + known + "\r\n" }
	post := func(more string) string {
		return "POST " + web.Prefix + "/topics HTTP/1.1\r\n" + known + "Content-Type: application/json\r\nContent-Length: 14\r\n" + more + "\r\n{\"name\":\"evil\"}"
	}
	for name, c := range map[string]struct {
		text string
		want int
	}{
		"who is known":                 {get(web.Prefix + "/groups"), 200},
		"a step up":                    {get(web.Prefix + "/../groups"), 307},
		"steps up to nowhere":          {get("/../../../../etc/passwd"), 307},
		"steps up that are hidden":     {get(web.Prefix + "/%2e%2e/%2e%2e/healthz"), 404},
		"slashes that are hidden":      {get(web.Prefix + "/groups/..%2f..%2f..%2fetc%2fpasswd"), 404},
		"two slashes":                  {get("/" + web.Prefix + "/groups"), 307},
		"a NUL":                        {get(web.Prefix + "/groups/a%00b"), 404},
		"a bare NUL":                   {get(web.Prefix + "/groups/a\x00b"), 400},
		"a path of the system":         {get("/assets/..%2f..%2fconsole.go"), 404},
		"a backslash":                  {get(web.Prefix + `\groups`), 404},
		"no path":                      {get("groups"), 400},
		"a long path":                  {get(web.Prefix + "/groups/" + strings.Repeat("a", 9<<10)), 414},
		"a long query":                 {get(web.Prefix + "/groups?q=" + strings.Repeat("a", 9<<10)), 414},
		"many values":                  {get(web.Prefix + "/groups?state=" + strings.Repeat("a,", 2000)), 400},
		"long headers":                 {"GET / HTTP/1.1\r\n" + known + "X: " + strings.Repeat("a", 64<<10) + "\r\n\r\n", 431},
		"many headers":                 {"GET / HTTP/1.1\r\n" + known + strings.Repeat("X: a\r\n", 16<<10) + "\r\n", 431},
		"a foreign name":               {"GET " + web.Prefix + "/groups HTTP/1.1\r\nHost: evil.example.org\r\n\r\n", 403},
		"no name":                      {"GET " + web.Prefix + "/groups HTTP/1.1\r\n\r\n", 400},
		"two names":                    {"GET " + web.Prefix + "/groups HTTP/1.1\r\nHost: localhost\r\nHost: evil.example.org\r\n\r\n", 400},
		"an old version, without name": {"GET " + web.Prefix + "/groups HTTP/1.0\r\n\r\n", 403},
		"an old version":               {"GET " + web.Prefix + "/groups HTTP/1.0\r\n" + known + "\r\n", 200},
		"a version of the future":      {"GET / HTTP/9.9\r\n" + known + "\r\n", 505},
		"two lengths":                  {"POST " + web.Prefix + "/session HTTP/1.1\r\n" + known + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 400},
		"length and chunks":            {"POST " + web.Prefix + "/session HTTP/1.1\r\n" + known + "Content-Type: application/json\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
		"a long body":                  {"POST " + web.Prefix + "/session HTTP/1.1\r\n" + known + "Content-Type: application/json\r\nContent-Length: 100000000\r\n\r\n" + strings.Repeat("a", 64<<10), 413},
		"another page, with cookie":    {post("Origin: http://evil.example.org\r\n"), 403},
		"a page that has no origin":    {post("Origin: null\r\n"), 403},
		"a page of another port":       {post("Origin: http://localhost:1\r\n"), 403},
		"another site, with cookie":    {post("Sec-Fetch-Site: cross-site\r\n"), 403},
		"a neighbour, with cookie":     {post("Sec-Fetch-Site: same-site\r\n"), 403},
		"CONNECT":                      {"CONNECT evil.example.org:80 HTTP/1.1\r\nHost: evil.example.org\r\n\r\n", 403},
		"TRACE":                        {"TRACE / HTTP/1.1\r\n" + known + "\r\n", 405},
		"a method that is none":        {"G(T / HTTP/1.1\r\n" + known + "\r\n", 400},
		"something else":               {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello \r\n\r\n", 400},
	} {
		began := time.Now()
		assert.Equal(t, codeOf(t, b, c.text), c.want, "%s", name)
		// A body that is refused is not waited for.
		if took := time.Since(began); took >= bodyTime {
			t.Errorf("%s: answered after %s", name, took)
		}
	}
}

// bodyTime is how long a body may take.
const bodyTime = 5 * time.Second

// Requests that are sent before the answers to others are read are answered one by one.
func TestRequestsInOneGoAreAnsweredInTheirOrder(t *testing.T) {
	b := startHTTP(t, nil)
	one := "GET " + web.Prefix + "/%s HTTP/1.1\r\nHost: localhost\r\n\r\n"
	c := speaks(t, b, strings.Repeat(fmt.Sprintf(one, "brokers")+fmt.Sprintf(one, "nothing"), 50))
	r := bufio.NewReader(c)
	for i := range 100 {
		resp, err := http.ReadResponse(r, nil)
		assert.Must(t, err, "answer %d", i)
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != []int{200, 404}[i%2] {
			t.Errorf("answer %d: %d, %v", i, resp.StatusCode, err)
		}
		_ = resp.Body.Close()
	}
}

// goesOn produces and fetches until it is told to stop, and returns how many records came
// back.
func goesOn(t *testing.T, b *broker.Broker) (stop func() int) {
	t.Helper()
	c := client(t, b, kgo.ConsumeTopics("orders"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ctx, cancel := context.WithCancel(t.Context())
	seen, failed := 0, error(nil)
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			if failed = c.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Value: []byte("x")}).FirstErr(); failed != nil {
				return
			}
			seen += c.PollFetches(t.Context()).NumRecords()
		}
	})
	return func() int {
		cancel()
		done.Wait()
		assert.True(t, failed == nil, "meanwhile: %v", failed)
		return seen
	}
}

// A thousand streams, and as many connections that say nothing: those beyond the bounds are
// refused, clients of Kafka do not notice, and all that was taken is given back.
func TestAThousandStreamsAreBoundedAndNobodyNotices(t *testing.T) {
	b := startHTTP(t, nil)
	stop := goesOn(t, b)
	ask(t, b, "/overview")
	before := runtime.NumGoroutine()
	codes := map[string]int{}
	var open []net.Conn
	for range 1000 {
		c, err := net.Dial("tcp", b.HTTPAddr())
		must(t, err)
		open = append(open, c)
		_ = c.SetDeadline(time.Now().Add(long))
		_, _ = io.WriteString(c, "GET "+web.Prefix+"/events?watch=groups HTTP/1.1\r\nHost: localhost\r\n\r\n")
		line := make([]byte, len("HTTP/1.1 200")) // A stream has no end.
		if _, err := io.ReadFull(c, line); err != nil {
			t.Fatal(err)
		}
		codes[string(line[len("HTTP/1.1 "):])]++
	}
	if codes["200"] != 16 || codes["503"] != 984 { // All are of one address.
		t.Errorf("the answers are %v", codes)
	}
	for range 1000 {
		c, err := net.Dial("tcp", b.HTTPAddr())
		must(t, err)
		open = append(open, c)
	}
	if n := runtime.NumGoroutine() - before; n > 2*256+100 {
		t.Errorf("%d goroutines more than before", n)
	}
	if code, body := ask(t, b, "/groups"); code != http.StatusOK {
		t.Errorf("others are answered with %d %s", code, body)
	}
	for _, c := range open {
		_ = c.Close()
	}
	assert.True(t, stop() != 0, "no record came back meanwhile")
	eventually(t, "what was taken is given back", func(context.Context) error {
		if n := runtime.NumGoroutine(); n > before+10 {
			return fmt.Errorf("%d goroutines, %d before", n, before)
		}
		return nil
	})
	if code, _ := ask(t, b, "/groups"); code != http.StatusOK {
		t.Errorf("afterwards: %d", code)
	}
}

// drips says one byte after another, and returns when the other side has hung up.
func drips(c net.Conn, text string) error {
	for i := 0; ; i++ {
		if _, err := io.WriteString(c, text[i%len(text):i%len(text)+1]); err != nil {
			return nil
		}
		if over, err := readsUntil(c, 200*time.Millisecond); over {
			return err
		}
	}
}

// readsUntil reads what comes within a time, and says whether the other side hung up.
func readsUntil(c net.Conn, d time.Duration) (bool, error) {
	_ = c.SetReadDeadline(time.Now().Add(d))
	_, err := io.Copy(io.Discard, c)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return false, nil
	case err != nil && !strings.Contains(err.Error(), "reset") && !errors.Is(err, io.EOF):
		return true, err
	}
	return true, nil
}

// Who sends or reads slowly, or stops, is not waited for, in plain text and under TLS.
func TestWhoIsSlowIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	keystore, _ := a.files()
	plain := startHTTP(t, nil)
	secure := startHTTP(t, map[string]string{"muster.http.listener": "https://127.0.0.1:0", "ssl.keystore.location": keystore})
	head := "POST " + web.Prefix + "/session HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 4000\r\n"
	const each = 20
	type slow struct {
		name string
		do   func() error
	}
	var all []slow
	for range each {
		headers := speaks(t, plain, "GET / HTTP/1.1\r\nHost: localhost\r\nX: ")
		body := speaks(t, plain, head+"\r\n{")
		silent := speaks(t, plain, head+"\r\n{")
		stalled := speaks(t, secure, "\x16\x03\x01")
		shaking := speaks(t, secure, "\x16\x03\x01\x02\x00")
		reader := speaks(t, plain, "")
		all = append(all,
			slow{"headers", func() error { return drips(headers, "a") }},
			slow{"a body", func() error { return drips(body, "a") }},
			slow{"a body that stops", func() error { return hungUp(silent) }},
			slow{"a handshake that stops", func() error { return hungUp(stalled) }},
			slow{"a handshake", func() error { return drips(shaking, "\x01") }},
			slow{"a reader", func() error { return neverReads(reader) }},
		)
	}
	errs := make(chan error, len(all))
	for _, s := range all {
		go func() {
			if err := s.do(); err != nil {
				errs <- fmt.Errorf("%s: %w", s.name, err)
				return
			}
			errs <- nil
		}()
	}
	if code, _ := ask(t, plain, "/groups"); code != http.StatusOK {
		t.Errorf("others meanwhile: %d", code)
	}
	if code, _ := people(t, secure, &tls.Config{RootCAs: a.Pool()}, http.MethodGet, "/groups", ""); code != http.StatusOK {
		t.Errorf("others under TLS meanwhile: %d", code)
	}
	for range all {
		assert.NoError(t, (<-errs))
	}
}

// hungUp waits until the other side hangs up.
func hungUp(c net.Conn) error {
	if over, err := readsUntil(c, long); !over || err != nil {
		return fmt.Errorf("it goes on: %w", err)
	}
	return nil
}

// neverReads asks for more than all buffers between hold, and reads nothing: the broker must
// stop taking requests, and in the end hang up.
func neverReads(c net.Conn) error {
	one := []byte("GET " + web.Prefix + "/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n")
	for range 1 << 20 {
		if _, err := c.Write(one); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				return errors.New("the broker waits")
			}
			return nil
		}
	}
	return errors.New("the broker takes everything")
}

// Beyond loopback, without users, people only read.
func TestPeopleOfOtherMachinesOnlyReadWithoutUsers(t *testing.T) {
	for anonymous, want := range map[string]bool{"reads": true, "full": false} {
		b := startHTTP(t, map[string]string{"muster.http.listener": "0.0.0.0:0", "muster.http.anonymous": anonymous})
		_, port, err := net.SplitHostPort(b.HTTPAddr())
		must(t, err)
		near := func(r *http.Request) { r.URL.Host, r.Host = "127.0.0.1:"+port, "127.0.0.1:"+port }
		if code, _ := ask(t, b, "/groups", near); code != http.StatusOK {
			t.Errorf("%s: to read: %d", anonymous, code)
		}
		s := answer[web.Session](t, b, "/session", near)
		assert.True(t, s.May.Act != want && s.May.Records != want && (s.ReadOnly != nil) == want, "%s: the session is %+v", anonymous, s)
		_, body := ask(t, b, "/topics", near, func(r *http.Request) {
			r.Method = http.MethodPost
			r.Header.Set("Content-Type", "application/json")
			r.Body = io.NopCloser(strings.NewReader(`{"name":"orders","partitions":1}`))
		})
		assert.Equal(t, strings.Contains(body, `"read_only"`), want, "%s: to act: %s", anonymous, body)
	}
}
