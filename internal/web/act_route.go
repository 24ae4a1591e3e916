package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"muster/internal/share"
	"muster/internal/web/problem"
	"muster/internal/words"
)

const (
	// maxBody is how large a body may be, and maxLargeBody where it has a record or any
	// number of partitions in it.
	maxBody      = 64 << 10
	maxLargeBody = 2 << 20
	// maxBodies is how many bytes of bodies there may be at a time, of all requests, and
	// maxOwnBodies how many of one address.
	maxBodies    = 64 << 20
	maxOwnBodies = maxBodies / 2
)

// Nothing is the body of a request that has none.
type Nothing struct{}

// actRoute makes a route that changes something. Whether the caller may is decided by what
// does it, which is the broker's handler of Kafka's requests; the needs are for people, and
// for previews.
func actRoute[Q, B, A any](method, name, path, doc string, serve func(*api, *call, *Q, *B) (*A, error), needs ...need) route {
	return route{
		method: method, path: path, name: name, doc: doc, needs: needs, acts: true, maxBody: maxBody,
		query: reflect.TypeFor[Q](), body: reflect.TypeFor[B](), answer: reflect.TypeFor[A](),
		serve: func(a *api, c *call) (any, error) {
			q, body := new(Q), new(B)
			if err := parseQuery(c.request.URL.RawQuery, q); err != nil {
				return nil, err
			}
			if err := parseBody(c.body, body); err != nil {
				return nil, err
			}
			if a.acts == nil {
				return nil, problem.Unavailable("this broker only reads")
			}
			return serve(a, c, q, body)
		},
	}
}

// large lets the body of a route have a record, or any number of partitions.
func (r route) large() route {
	r.maxBody = maxLargeBody
	return r
}

func (r *route) takesBody() bool { return r.body != nil && r.body != reflect.TypeFor[Nothing]() }

// readBody reads what a request brings, which is JSON: forms of other pages cannot send
// that. What it takes is counted until release is called.
func (a *api) readBody(rt *route, r *http.Request) (body []byte, release func(), err error) {
	release = func() {}
	if !rt.takesBody() {
		if rt.body != nil && r.ContentLength != 0 {
			return nil, release, problem.BadRequest("%s takes no body here", r.Method)
		}
		return nil, release, nil
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != problem.JSON {
		return nil, release, &problem.Problem{Status: http.StatusUnsupportedMediaType, Code: "not_json", Message: "the body must be JSON, and the Content-Type header say " + problem.JSON}
	}
	tooLarge := &problem.Problem{Status: http.StatusRequestEntityTooLarge, Code: "too_large", Message: "the body may have at most " + words.Size(rt.maxBody)}
	size := r.ContentLength
	switch {
	case size > rt.maxBody:
		return nil, release, tooLarge // Before it is sent, if the client asks first (Expect: 100-continue).
	case size < 0:
		size = rt.maxBody
	}
	from := share.Neighbourhood(r.RemoteAddr)
	if !a.bodies.Take(from, size) {
		return nil, release, problem.Busy()
	}
	release = func() { a.bodies.Give(from, size) }
	body, err = io.ReadAll(io.LimitReader(r.Body, rt.maxBody+1))
	switch {
	case err != nil:
		return nil, release, problem.BadRequest("the body could not be read: %v", err)
	case int64(len(body)) > rt.maxBody:
		return nil, release, tooLarge
	}
	return body, release, nil
}

// parseBody reads JSON into a struct. A field that nobody knows is refused: what somebody
// asked for must not be left out.
func parseBody(body []byte, into any) error {
	if _, none := into.(*Nothing); none {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	var kind *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.EOF):
		return problem.BadRequest("there is no body; it must be a JSON object")
	case errors.As(err, &kind) && kind.Field == "":
		return problem.BadRequest("the body must be a JSON object, not %s", kind.Value)
	case errors.As(err, &kind):
		return problem.BadRequest("%s cannot be %s; it is %s", kind.Field, kind.Value, wordFor(kind.Type))
	case err != nil:
		return problem.BadRequest("the body cannot be read: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return problem.BadRequest("there is something after the JSON object of the body")
	}
	return nil
}

// wordFor says what a field takes.
func wordFor(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[Offset]() {
		return "a string, as all offsets are"
	}
	switch t.Kind() {
	case reflect.Int32, reflect.Int64, reflect.Int:
		return "a whole number that fits into " + t.Kind().String()
	case reflect.Float64:
		return "a number"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	}
	return "an object"
}

// methodsOf returns the methods that a path answers.
func methodsOf(path string) []string {
	var out []string
	for _, r := range allRoutes() {
		if fits(Prefix+r.path, path) && !slices.Contains(out, r.method) {
			if out = append(out, r.method); r.method == http.MethodGet {
				out = append(out, http.MethodHead)
			}
		}
	}
	slices.Sort(out)
	return out
}

// fits says whether a path is one of a route.
func fits(pattern, path string) bool {
	want, have := strings.Split(pattern, "/"), strings.Split(path, "/")
	return slices.EqualFunc(want, have, func(w, h string) bool { return w == h || strings.HasPrefix(w, "{") && h != "" })
}

// noRoute answers what no route does.
func noRoute(w http.ResponseWriter, r *http.Request) {
	methods := methodsOf(r.URL.EscapedPath())
	if len(methods) == 0 {
		problem.Write(w, problem.NotFound("there is no such path; %s/openapi.json lists all", Prefix))
		return
	}
	w.Header().Set("Allow", strings.Join(methods, ", "))
	problem.Write(w, &problem.Problem{Status: http.StatusMethodNotAllowed, Code: "method_not_allowed", Message: "this path answers only " + strings.Join(methods, ", ")})
}
