package web

import (
	"context"
	"net/http"
	"reflect"
	"strings"
	"time"

	"muster/internal/auth"
	"muster/internal/web/act"
	"muster/internal/web/fleet"
	"muster/internal/web/login"
	"muster/internal/web/problem"
)

// route is a line of the table.
type route struct {
	method string
	path   string // Below /api/v1, with names of parameters in braces.
	name   string // Of the operation, for generated code.
	doc    string // One line for people.
	query  reflect.Type
	body   reflect.Type // nil if it only reads
	answer reflect.Type
	needs  []need
	acts   bool // It changes something, so anonymous people from afar may not.
	shows  bool // It shows what is in records, so they may not see it either.
	open   bool // It wants no login.
	lines  bool // The answer is a JSON document a line.
	stream bool // Changes come one by one, as server-sent events.
	// maxBody is how large its body may be.
	maxBody int64
	serve   func(a *api, c *call) (any, error)
}

// need is a right that a route needs.
type need struct {
	operation auth.Operation
	kind      auth.ResourceType
	param     string // The parameter of the path that names the resource.
	listed    bool   // What somebody lacks it for is left out of a list.
	some      bool   // It is one of several that would do, which only the handler knows.
}

// The needs of routes.
var (
	describesCluster = need{operation: auth.Describe, kind: auth.Cluster}
	describesGroup   = need{operation: auth.Describe, kind: auth.Group, param: "group"}
	describesTopic   = need{operation: auth.Describe, kind: auth.Topic, param: "topic"}
	listsGroups      = need{operation: auth.Describe, kind: auth.Group, listed: true}
	listsTopics      = need{operation: auth.Describe, kind: auth.Topic, listed: true}
	readsSettings    = need{operation: auth.DescribeConfigs, kind: auth.Cluster}
)

// String says the need in words.
func (n need) String() string {
	what := n.operation.String() + " on "
	switch {
	case n.kind == auth.Cluster:
		return what + "the cluster"
	case n.some:
		return what + "the " + strings.ToLower(n.kind.String()) + ", or on the cluster"
	case n.listed:
		return what + "each " + strings.ToLower(n.kind.String()) + ", or it is left out"
	}
	return what + "the " + strings.ToLower(n.kind.String())
}

// get makes a route that only reads.
func get[Q, A any](name, path, doc string, serve func(*api, *call, *Q) (*A, error), needs ...need) route {
	return route{
		method: http.MethodGet, path: path, name: name, doc: doc, needs: needs,
		query: reflect.TypeFor[Q](), answer: reflect.TypeFor[A](),
		serve: func(a *api, c *call) (any, error) {
			q := new(Q)
			if err := parseQuery(c.request.URL.RawQuery, q); err != nil {
				return nil, err
			}
			if err := a.allowed(c, needs); err != nil {
				return nil, err
			}
			return serve(a, c, q)
		},
	}
}

// call is a request on its way through the API.
type call struct {
	request *http.Request
	who     auth.Principal
	groups  auth.Groups // That they are in.
	host    string      // That it comes from, in the form of auth.Host.
	body    []byte
	login   string // How they logged in.
	id      login.Identity
	ends    time.Time   // When that ends by itself; zero for never.
	secret  string      // That their browser keeps, if it does.
	note    *fleet.Note // Of the broker that asks; nil if somebody else does.
}

func newCall(r *http.Request) *call {
	return &call{request: r, who: auth.Anonymous, host: remoteHost(r), login: login.None}
}

func (c *call) ctx() context.Context { return c.request.Context() }

// param returns a parameter of the path.
func (c *call) param(name string) string { return c.request.PathValue(name) }

// asks is the question whether the caller may do something.
func (c *call) asks(op auth.Operation, kind auth.ResourceType, name string) auth.Request {
	return auth.Request{Principal: c.who, Groups: c.groups, Host: c.host, Operation: op, Type: kind, Name: name}
}

// allowed says whether the caller has the rights that a route needs. It comes before
// anything is looked for, so that nobody learns what there is.
func (a *api) allowed(c *call, needs []need) error {
	for _, n := range needs {
		if n.listed || n.some {
			continue
		}
		name := auth.ClusterName
		if n.kind != auth.Cluster {
			name = c.param(n.param)
		}
		if err := a.may(c.asks(n.operation, n.kind, name)); err != nil {
			return err
		}
	}
	return nil
}

// may returns the problem of somebody who may not do something.
func (a *api) may(q auth.Request) error {
	ok, command := a.gate.May(q)
	if ok {
		return nil
	}
	acl := &problem.MissingACL{Principal: string(q.Principal), Operation: q.Operation.String(), ResourceType: q.Type.String(), ResourceName: q.Name, Command: command}
	return &problem.Problem{
		Status: http.StatusForbidden, Code: "forbidden", MissingACL: acl,
		Message: acl.Principal + " may not " + acl.Operation + " " + strings.ToLower(acl.ResourceType) + " " + q.Name,
	}
}

// sees says whether the caller may know of something.
func (a *api) sees(c *call, kind auth.ResourceType, name string) bool {
	return a.gate.Sees(c.asks(auth.Describe, kind, name))
}

// asker is the caller as acts know them.
func (c *call) asker() act.Asker { return act.Asker{Principal: c.who, Groups: c.groups, Host: c.host} }
