package console_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// front stands between a browser and a broker, and can have the broker say something else,
// refuse, or say nothing: brokers that are unwell are hard to come by.
type front struct {
	base string
	cut  func() // Breaks all connections.

	mu    sync.Mutex
	rules []rule
}

// rule is about requests whose method and address contain something.
type rule struct {
	about   string
	status  int                  // Not 0: it is refused with it.
	hangs   bool                 // It is never answered.
	quiet   bool                 // It is a stream on which nothing comes, and that is opened again at once.
	gone    bool                 // The connection breaks.
	came    chan struct{}        // Not nil: it is told here that one came,
	held    chan struct{}        // which is answered when this is closed.
	session string               // Not empty: it is answered with this.
	change  func(map[string]any) // It changes the answer.
}

func newFront(t *testing.T, w *world) *front {
	t.Helper()
	to, err := url.Parse("http://" + w.broker.HTTPAddr())
	must(t, err)
	f := &front{}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host
			r.Out.Header.Del("Accept-Encoding")
		},
		ModifyResponse: f.modify,
		ErrorHandler:   func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := f.ruleOf(r)
		switch {
		case x != nil && x.gone:
			panic(http.ErrAbortHandler)
		case x != nil && x.hangs:
			<-r.Context().Done()
		case x != nil && x.quiet:
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "retry: 20\n\n")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case x != nil && x.session != "":
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, x.session)
		case x != nil && x.status != 0:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(x.status)
			_, _ = io.WriteString(w, `{"code":"unavailable","message":"the store is away for a moment"}`)
		default:
			if x != nil && x.came != nil {
				x.came <- struct{}{}
				select {
				case <-x.held:
				case <-r.Context().Done():
				}
			}
			proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), ruleKey{}, x)))
		}
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	f.cut = s.CloseClientConnections
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	f.base = s.URL
	return f
}

// ruleKey is what the rule of a request is known under.
type ruleKey struct{}

func of(r *http.Request) string { return r.Method + " " + r.URL.RequestURI() }

func (f *front) ruleOf(r *http.Request) *rule {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.rules {
		if strings.Contains(of(r), f.rules[i].about) {
			return &f.rules[i]
		}
	}
	return nil
}

// obey makes these the rules.
func (f *front) obey(rules ...rule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = rules
}

func (f *front) modify(resp *http.Response) error {
	x, _ := resp.Request.Context().Value(ruleKey{}).(*rule)
	if x == nil || x.change == nil || resp.StatusCode != http.StatusOK {
		return nil
	}
	var body map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
		return err
	}
	x.change(body)
	b, err := json.Marshal(body)
	resp.Body = io.NopCloser(bytes.NewReader(b))
	resp.Header.Set("Content-Length", strconv.Itoa(len(b)))
	resp.ContentLength = int64(len(b))
	return err
}

// list is what answers have lists of.
func list(items ...map[string]any) []map[string]any { return append([]map[string]any{}, items...) }
