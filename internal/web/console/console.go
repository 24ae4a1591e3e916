// Package console is the pages for people: it serves what is made of the TypeScript
// sources in src, which asks /api/v1 for everything that it shows.
//
//	src, npm packages (pinned) ── esbuild, in a test (go generate) ──> dist (committed) ── go:embed ──> Handler
//
// To build muster no one needs Node or npm: the result is committed, and a test fails
// where it is not what the sources say. The package knows nothing of the broker and keeps
// no state; which data someone may see is the API's affair.
package console

import (
	"bytes"
	"compress/gzip"
	"embed"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

//go:generate go test -run TestBundleIsCurrent -rewrite .

//go:embed dist
var dist embed.FS

// policy lets the page load what comes from here, and nothing else: no script or style in
// the page itself, so that a name that looks like one does no harm.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// pages are the first parts of the paths of pages. The second is a name, which may be
// anything that a path can have.
var pages = map[string]bool{"": true, "groups": true, "topics": true, "brokers": true, "journal": true, "users": true, "acls": true, "quotas": true}

// named says which pages have pages of things below them.
var named = map[string]bool{"groups": true, "topics": true}

const (
	assets    = "/assets/"
	indexFile = "index.html"
)

// file is a file of the console.
type file struct {
	contentType    string
	plain, gzipped []byte
}

// files reads what is embedded, once.
var files = sync.OnceValue(func() map[string]*file {
	out := map[string]*file{}
	entries, err := fs.ReadDir(dist, "dist")
	if err != nil {
		panic(err) // It is part of the binary.
	}
	for _, e := range entries {
		b, err := fs.ReadFile(dist, path.Join("dist", e.Name()))
		if err != nil {
			panic(err)
		}
		name, packed := strings.CutSuffix(e.Name(), ".gz")
		f := &file{contentType: contentType(name), plain: b}
		if packed {
			f.plain, f.gzipped = unpack(b), b
		}
		out[name] = f
	}
	return out
})

func unpack(b []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		panic(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		panic(err)
	}
	return out
}

// contentType does not ask the system, whose tables differ.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return "text/plain; charset=utf-8"
}

// Handler serves the pages and what they load.
func Handler() http.Handler { return http.HandlerFunc(serve) }

func serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "pages are only read", http.StatusMethodNotAllowed)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	p := r.URL.EscapedPath()
	if name, ok := strings.CutPrefix(p, assets); ok {
		f := files()[name]
		if f == nil || name == indexFile {
			http.NotFound(w, r)
			return
		}
		// The name is made of what is in it, so it never changes.
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
		send(w, r, f, http.StatusOK)
		return
	}
	h.Set("Cache-Control", "no-store") // After an upgrade it loads other files.
	status := http.StatusOK
	if !isPage(p) {
		status = http.StatusNotFound // The page says so, and leads on.
	}
	send(w, r, files()[indexFile], status)
}

// isPage says whether the console has a page at a path, which is still escaped.
func isPage(p string) bool {
	first, rest, more := strings.Cut(strings.TrimPrefix(p, "/"), "/")
	return pages[first] && (!more || named[first] && !strings.Contains(rest, "/"))
}

func send(w http.ResponseWriter, r *http.Request, f *file, status int) {
	body := f.plain
	h := w.Header()
	h.Set("Content-Type", f.contentType)
	if f.gzipped != nil {
		h.Set("Vary", "Accept-Encoding")
		if acceptsGzip(r.Header.Get("Accept-Encoding")) {
			h.Set("Content-Encoding", "gzip")
			body = f.gzipped
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // Who asked may be gone.
	}
}

// acceptsGzip says whether a client takes gzip. One that gives it a weight of nought
// does not.
func acceptsGzip(header string) bool {
	for part := range strings.SplitSeq(header, ",") {
		coding, params, err := mime.ParseMediaType(strings.TrimSpace(part))
		if err != nil || coding != "gzip" && coding != "*" {
			continue
		}
		weight, err := strconv.ParseFloat(params["q"], 64)
		return err != nil || weight > 0
	}
	return false
}
