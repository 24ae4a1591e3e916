package web

import (
	"context"
	"net/http"
	"reflect"
	"slices"
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
	listed    bool   // What someone lacks it for is left out of a list.
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
	note    *fleet.Note // Of the broker that asks; nil if someone else does.
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
// anything is looked for, so that no one learns what there is.
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

// may returns the problem of someone who may not do something.
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

//go:generate go test -run TestGeneratedFilesAreCurrent -rewrite .

// Prefix is where the API is. Version 1 only gains fields and routes.
const Prefix = "/api/v1"

// routes is the one list of what the API answers. The OpenAPI document and the
// TypeScript types are made of it.
var routes = []route{
	get("overview", "/overview", "How the broker is, and which groups need attention, worst first, with a sentence each.", (*api).overview, listsGroups),
	get("groups", "/groups", "Groups by filter and order, page by page.", (*api).groups, listsGroups),
	get("group", "/groups/{group}", "A group as it is now: members, partitions, offsets, lag and what is wrong with it.", (*api).group, describesGroup, listsTopics),
	get("groupHistory", "/groups/{group}/history", "The lag of a group over time, or where it was in a partition.", (*api).history, describesGroup, listsTopics),
	get("groupJournal", "/groups/{group}/journal", "What happened to a group, and why: the entries of its journal, the oldest first.", (*api).groupJournal, describesGroup, listsTopics),
	get("groupExplain", "/groups/{group}/explain", "Why a group rebalanced, what is odd about it and what to change: what muster groups explain prints.", (*api).explain, describesGroup),
	get("topics", "/topics", "Topics by name and order, page by page.", (*api).topics, listsTopics),
	get("topic", "/topics/{topic}", "A topic: its partitions, settings, and the groups that read it.", (*api).topic, describesTopic, listsGroups),
	get("topicConfigs", "/topics/{topic}/configs", "The settings of a topic, and what they would be by default.", (*api).topicConfigs, describesTopic, readsTopicSettings),
	get("brokers", "/brokers", "The brokers of the cluster.", (*api).brokers, describesCluster),
	get("journal", "/journal", "What happened to groups, and why: the latest entries of the journal, the oldest first.", (*api).journal, listsGroups, listsTopics),
	get("users", "/users", "The users, and how they can log in.", (*api).users, describesCluster),
	get("acls", "/acls", "The rules of who may do what.", (*api).rules, describesCluster),
	get("aclsWhy", "/acls/why", "Whether a user may do something, and which rule decides: what muster acls why prints.", (*api).why, describesCluster),
	get("quotas", "/quotas", "The quotas of users, clients and addresses.", (*api).quotas, readsSettings),
	opened(get("session", "/session", "Who is logged in, how one can log in, and whether anything may be changed here.", (*api).session)),
	get("settings", "/settings", "The settings of the broker. Passwords are not shown.", (*api).settings, readsSettings),
}

// events is the one route that streams (text/event-stream).
var events = route{
	method: http.MethodGet, path: "/events", name: "events", stream: true,
	doc:   "Tells of changes as they come, as server-sent events: changed with what to read again, reset after a gap, when all may have changed.",
	query: reflect.TypeFor[EventsQuery](), answer: reflect.TypeFor[Changed](), needs: []need{listsGroups},
}

// allRoutes is what the generated files tell of.
func allRoutes() []route {
	return append(slices.Concat(routes, acts), events, recordsRoute, logIn, logOut)
}

// What acts need. The handler of the Kafka request that an act stands for decides; these
// are for people, and decide about previews.
var (
	createsTopic   = need{operation: auth.Create, kind: auth.Topic, some: true}
	deletesTopic   = need{operation: auth.Delete, kind: auth.Topic, param: "topic"}
	altersTopic    = need{operation: auth.Alter, kind: auth.Topic, param: "topic"}
	configuresIt   = need{operation: auth.AlterConfigs, kind: auth.Topic, param: "topic"}
	writesTopic    = need{operation: auth.Write, kind: auth.Topic, param: "topic"}
	readsGroup     = need{operation: auth.Read, kind: auth.Group, param: "group"}
	readsTopics    = need{operation: auth.Read, kind: auth.Topic, listed: true}
	deletesGroup   = need{operation: auth.Delete, kind: auth.Group, param: "group"}
	altersCluster  = need{operation: auth.Alter, kind: auth.Cluster}
	altersSettings = need{operation: auth.AlterConfigs, kind: auth.Cluster}
)

// acts is the one list of what changes something. Each sends the requests of the Kafka
// protocol that do the same, as the one who asks: rights, quotas, rules and the audit log
// are those of the protocol.
var acts = []route{
	actRoute(http.MethodPost, "createTopic", "/topics", "Creates a topic.", (*api).createTopic, createsTopic),
	actRoute(http.MethodDelete, "deleteTopic", "/topics/{topic}", "Deletes a topic with its records.", (*api).deleteTopic, deletesTopic),
	actRoute(http.MethodPost, "addPartitions", "/topics/{topic}/partitions", "Adds partitions to a topic.", (*api).addPartitions, altersTopic),
	actRoute(http.MethodPut, "alterTopic", "/topics/{topic}/configs", "Changes settings of a topic.", (*api).alterTopic, configuresIt),
	actRoute(http.MethodPost, "produce", "/topics/{topic}/records", "Produces a record.", (*api).produce, writesTopic).large(),
	actRoute(http.MethodDelete, "deleteRecords", "/topics/{topic}/records", "Deletes the records of partitions before an offset.", (*api).deleteRecords, deletesTopic).large(),
	actRoute(http.MethodPost, "planReset", "/groups/{group}/resets", "Says what a reset of a group's committed offsets would do, and does nothing.", (*api).planReset, readsGroup, readsTopics).large(),
	actRoute(http.MethodPost, "executeReset", "/groups/{group}/resets/execute", "Moves committed offsets of a group without members, as planned. It is refused if they are not those of the plan any more.", (*api).executeReset, readsGroup, readsTopics).large(),
	actRoute(http.MethodDelete, "deleteGroup", "/groups/{group}", "Deletes a group without members, and what it has committed.", (*api).deleteGroup, deletesGroup),
	actRoute(http.MethodDelete, "deleteOffsets", "/groups/{group}/offsets", "Deletes committed offsets of a group, of topics that no member subscribes to.", (*api).deleteOffsets, deletesGroup, readsTopics).large(),
	actRoute(http.MethodPost, "removeMember", "/groups/{group}/members/remove", "Removes a member from a group, which then rebalances. One that still runs joins again.", (*api).removeMember, readsGroup),
	actRoute(http.MethodPut, "setPassword", "/users/{user}", "Sets the password of a user, who is created if there is none of the name.", (*api).setPassword, altersCluster),
	actRoute(http.MethodDelete, "deleteUser", "/users/{user}", "Deletes a user.", (*api).deleteUser, altersCluster),
	actRoute(http.MethodPost, "addAcl", "/acls", "Adds a rule.", (*api).addRule, altersCluster),
	actRoute(http.MethodDelete, "removeAcl", "/acls", "Removes a rule.", (*api).removeRule, altersCluster),
	actRoute(http.MethodPut, "alterQuota", "/quotas", "Changes quotas.", (*api).alterQuota, altersSettings),
}
