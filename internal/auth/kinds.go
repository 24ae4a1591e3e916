package auth

import (
	"fmt"
	"slices"
	"strings"
)

// The kinds have Kafka's numbers and names. 0 is what a number means that no one
// knows, 1 stands for all in a filter.

// ResourceType is what a rule protects.
type ResourceType int8

// The resource types. Kafka's others, delegation tokens (6) and users (7), are
// about tokens that muster does not have.
const (
	UnknownResource ResourceType = iota
	AnyResource
	Topic
	Group
	Cluster
	TransactionalID

	resourceTypes // how many there are
)

// ClusterName is the name of the one resource of type Cluster.
const ClusterName = "kafka-cluster"

// PatternType says how a rule's name matches names of resources.
type PatternType int8

// The pattern types. Match is for filters: all patterns that match a name.
const (
	UnknownPattern PatternType = iota
	AnyPattern
	Match
	Literal
	Prefixed
)

// Wildcard is the name that, in a literal pattern, matches all names.
const Wildcard = "*"

// Operation is what someone wants to do.
type Operation int8

// The operations.
const (
	UnknownOperation Operation = iota
	AnyOperation
	All
	Read
	Write
	Create
	Delete
	Alter
	Describe
	ClusterAction
	DescribeConfigs
	AlterConfigs
	IdempotentWrite
	CreateTokens
	DescribeTokens
	TwoPhaseCommit

	operations // how many there are
)

// Permission says whether a rule allows or denies.
type Permission int8

// The permissions.
const (
	UnknownPermission Permission = iota
	AnyPermission
	Deny
	Allow
)

var (
	resourceNames   = []string{"UNKNOWN", "ANY", "TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID"}
	patternNames    = []string{"UNKNOWN", "ANY", "MATCH", "LITERAL", "PREFIXED"}
	permissionNames = []string{"UNKNOWN", "ANY", "DENY", "ALLOW"}
	operationNames  = []string{
		"UNKNOWN", "ANY", "ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS",
		"ALTER_CONFIGS", "IDEMPOTENT_WRITE", "CREATE_TOKENS", "DESCRIBE_TOKENS", "TWO_PHASE_COMMIT",
	}
)

// kind is any of the four.
type kind interface{ ~int8 }

func nameOf[K kind](names []string, k K) string {
	if k < 0 || int(k) >= len(names) {
		return names[0]
	}
	return names[k]
}

// parse finds a name as people write it: TRANSACTIONAL_ID, TransactionalId or
// transactional-id.
func parse[K kind](names []string, what, s string) (K, error) {
	plain := func(s string) string { return strings.NewReplacer("_", "", "-", "").Replace(strings.ToUpper(s)) }
	i := slices.IndexFunc(names, func(name string) bool { return plain(name) == plain(s) })
	if i <= 0 {
		return 0, fmt.Errorf("%q is no %s: it is one of %s", s, what, strings.ToLower(strings.Join(names[1:], ", ")))
	}
	return K(i), nil
}

// String returns Kafka's name, UNKNOWN for a number that has none.
func (t ResourceType) String() string { return nameOf(resourceNames, t) }

// String returns Kafka's name, UNKNOWN for a number that has none.
func (t PatternType) String() string { return nameOf(patternNames, t) }

// String returns Kafka's name, UNKNOWN for a number that has none.
func (o Operation) String() string { return nameOf(operationNames, o) }

// String returns Kafka's name, UNKNOWN for a number that has none.
func (p Permission) String() string { return nameOf(permissionNames, p) }

// ParseResourceType reads a name in any case.
func ParseResourceType(s string) (ResourceType, error) {
	return parse[ResourceType](resourceNames, "resource type", s)
}

// ParsePatternType reads a name in any case.
func ParsePatternType(s string) (PatternType, error) {
	return parse[PatternType](patternNames, "pattern type", s)
}

// ParseOperation reads a name in any case.
func ParseOperation(s string) (Operation, error) {
	return parse[Operation](operationNames, "operation", s)
}

// ParsePermission reads a name in any case.
func ParsePermission(s string) (Permission, error) {
	return parse[Permission](permissionNames, "permission", s)
}
