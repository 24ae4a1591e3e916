package auth

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Right is to be allowed an operation on a resource type.
type Right struct {
	Operation Operation
	Type      ResourceType
}

// Need is what a request needs a right for.
type Need struct {
	// AnyOf are the rights of which one will do.
	AnyOf []Right
	// Denied is Kafka's error for who has none of them. Where it is nil, Kafka
	// answers as if the resource were not there.
	Denied *kerr.Error
	// When says in words when the need arises and how far the error goes; it is
	// empty for a need that each resource of every request has.
	When string
}

func need(op Operation, t ResourceType, when string) Need {
	return Need{AnyOf: []Right{{op, t}}, Denied: t.Denied(), When: when}
}

// Denied returns Kafka's error for who lacks a right on the resource type.
func (t ResourceType) Denied() *kerr.Error {
	switch t {
	case Topic:
		return kerr.TopicAuthorizationFailed
	case Group:
		return kerr.GroupAuthorizationFailed
	case TransactionalID:
		return kerr.TransactionalIDAuthorizationFailed
	}
	return kerr.ClusterAuthorizationFailed
}

// leftOut is a need without an error: what is denied is left out of the answer.
func leftOut(when string, anyOf ...Right) Need { return Need{AnyOf: anyOf, When: when} }

// toCreate is the right to create topics, which the cluster's gives for all.
func toCreate(when string) Need {
	return Need{AnyOf: []Right{{Create, Cluster}, {Create, Topic}}, Denied: kerr.TopicAuthorizationFailed, When: when}
}

var (
	noNeeds          = []Need{}
	readGroup        = []Need{need(Read, Group, "")}
	readBoth         = []Need{need(Read, Group, "for all"), need(Read, Topic, "")}
	describeTopic    = []Need{need(Describe, Topic, "left out where all are asked for")}
	describeCluster  = []Need{need(Describe, Cluster, "")}
	alterCluster     = []Need{need(Alter, Cluster, "")}
	alterConfigs     = settings(AlterConfigs)
	readGroupAndSee  = []Need{need(Read, Group, ""), need(Describe, Topic, "for each topic that is named; the whole request is denied")}
	describeNewGroup = []Need{need(Describe, Group, ""), need(Describe, Topic, "for each topic of the group; the whole group is denied")}
)

func settings(op Operation) []Need {
	return []Need{need(op, Topic, "for a topic"), need(op, Group, "for a group"), need(op, Cluster, "for a broker")}
}

// needs is the table of rights, by API key. A request needs every line of its key.
var needs = map[int16][]Need{
	0: {need(Write, TransactionalID, "if it is transactional; for all"), need(Write, Topic, "")},
	1: {need(Read, Topic, "")},
	2: describeTopic,
	3: {describeTopic[0], toCreate("if it creates the topic")},
	8: readBoth,
	9: {need(Describe, Group, ""), need(Describe, Topic, "left out where all are asked for")},
	10: {
		need(Describe, Group, "for a group"), need(Describe, TransactionalID, "for a transactional id"), need(ClusterAction, Cluster, "for a share group's state"),
	},
	11: readGroup, 12: readGroup, 13: readGroup, 14: readGroup,
	15: {need(Describe, Group, "")},
	16: {leftOut("", Right{Describe, Cluster}, Right{Describe, Group})},
	17: noNeeds, 18: noNeeds,
	19: {toCreate(""), leftOut("to be told the settings", Right{DescribeConfigs, Topic})},
	20: {need(Describe, Topic, "if it is named by its id"), need(Delete, Topic, "")},
	21: {need(Delete, Topic, "")},
	22: {
		need(Write, TransactionalID, "with a transactional id"),
		{AnyOf: []Right{{IdempotentWrite, Cluster}, {Write, Topic}}, Denied: kerr.ClusterAuthorizationFailed, When: "without one; of topics, any will do"},
	},
	23: {need(Describe, Topic, "")},
	24: {
		need(Write, TransactionalID, "below version 4; for all"), need(Write, Topic, "below version 4; others are not attempted, 55"),
		need(ClusterAction, Cluster, "from version 4 on"),
	},
	25: {need(Write, TransactionalID, ""), need(Read, Group, "")},
	26: {need(Write, TransactionalID, "")},
	27: {{AnyOf: []Right{{Alter, Cluster}, {ClusterAction, Cluster}}, Denied: kerr.ClusterAuthorizationFailed}},
	28: {need(Write, TransactionalID, "for all"), need(Read, Group, "for all"), need(Read, Topic, "")},
	29: describeCluster, 30: alterCluster, 31: alterCluster,
	32: settings(DescribeConfigs), 33: alterConfigs,
	34: alterCluster,
	35: {need(Describe, Cluster, "below version 3 the answer is empty")},
	36: noNeeds,
	37: {need(Alter, Topic, "")},
	42: {need(Delete, Group, "")},
	43: alterCluster, 44: alterConfigs, 45: alterCluster, 46: describeCluster,
	47: {need(Delete, Group, "for all"), need(Read, Topic, "")},
	48: {need(DescribeConfigs, Cluster, "")},
	49: {need(AlterConfigs, Cluster, "")},
	50: describeCluster, 51: alterCluster, 55: describeCluster, 57: alterCluster,
	60: {leftOut("to be told the operations", Right{Describe, Cluster})},
	61: {need(Read, Topic, "")},
	65: {need(Describe, TransactionalID, ""), leftOut("for each topic of the transaction", Right{Describe, Topic})},
	66: {leftOut("", Right{Describe, TransactionalID})},
	68: readGroupAndSee, 69: describeNewGroup,
	71: noNeeds, 72: noNeeds,
	74: {need(DescribeConfigs, Cluster, "")},
	75: describeTopic,
	76: readGroupAndSee, 77: describeNewGroup,
	78: readBoth, 79: readBoth,
	88: append(slices.Clone(readGroupAndSee), toCreate("for internal topics; told in the status")), 89: describeNewGroup,
	90: {need(Describe, Group, "for all"), need(Describe, Topic, "")},
	91: readBoth,
	92: {need(Delete, Group, "for all"), need(Read, Topic, "")},
}

// Needs returns what requests of an API key need. A key that is not in the table
// must not be served where there are rules.
func Needs(key int16) (list []Need, known bool) {
	list, known = needs[key]
	return slices.Clone(list), known
}

// NeedsKeys returns the keys that the table has, in order.
func NeedsKeys() []int16 { return slices.Sorted(maps.Keys(needs)) }

// String says the right as the documents do.
func (r Right) String() string { return fmt.Sprintf("%v %s", r.Operation, plain(r.Type.String(), " ")) }

// String says the need as the documents do.
func (n Need) String() string {
	var rights []string
	for _, r := range n.AnyOf {
		rights = append(rights, r.String())
	}
	s := strings.Join(rights, " or ")
	if n.Denied == nil {
		s += ", else left out"
	} else {
		s += fmt.Sprintf(", else %d", n.Denied.Code)
	}
	if n.When != "" {
		s += " (" + n.When + ")"
	}
	return s
}
