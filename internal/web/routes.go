package web

import (
	"net/http"
	"reflect"
	"slices"
)

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
