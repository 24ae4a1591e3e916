package handler

import (
	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/auth"
	"muster/internal/metadata"
)

// Every handler asks here whether the client may do what it asks for. auth.Needs
// has what each API key needs, docs/compatibility.md shows it, and a test holds
// both against what the handlers do. Where there is no authorizer, and for super
// users and brokers of the cluster, everything is allowed.

// fewKnown is how many resources a request is about mostly, and maxKnown how many are
// remembered, so that a request with a million names does not take more than its own
// memory.
const (
	fewKnown = 4
	maxKnown = 1000
)

// rights is what is known so far of the rights of a request's client, so that the
// rules are asked once for each resource, and not for each partition of it.
type rights struct {
	image *metadata.Image // of which rules is known
	rules *auth.Index     // nil if everything is allowed
	who   auth.Principal
	host  string
	few   [fewKnown]known
	count int // of few
	more  map[guarded]*known
}

// guarded is a resource that rules are about.
type guarded struct {
	kind auth.ResourceType
	name string
}

// known is what a client may do with a resource.
type known struct {
	guarded
	may  auth.Operations
	told auth.Operations // which denials have been noted
}

// rules returns the rules to ask, nil if everything is allowed. They are those of the
// call's image, which requests that wait take anew.
func (c *call) rules() *auth.Index {
	if c.rights.image == c.image {
		return c.rights.rules
	}
	var rules *auth.Index
	if c.image.Authorizes() && !c.image.Rules.IsSuper(c.principal()) && !c.fromBroker() {
		rules = c.image.Rules
	}
	if rules != c.rights.rules {
		c.rights = rights{rules: rules, who: c.principal(), host: c.host()}
	}
	c.rights.image = c.image
	return rules
}

// may says whether the client may do something with a resource. A denial is noted,
// once for each request.
func (c *call) may(op auth.Operation, t auth.ResourceType, name string) bool {
	rules := c.rules()
	if rules == nil {
		return true
	}
	k := c.rights.of(guarded{t, name})
	if k == nil {
		k = c.rights.learn(known{guarded: guarded{t, name}, may: rules.Rights(c.rights.who, c.rights.host, t, name)})
	}
	if k.may.Has(op) {
		return true
	}
	if !k.told.Has(op) {
		k.told |= auth.Set(op)
		c.h.denied(rules, c.rights.request(op, t, name))
	}
	return false
}

// of returns what is known of a resource, nil if nothing is.
func (r *rights) of(g guarded) *known {
	for i := range r.few[:r.count] {
		if r.few[i].guarded == g {
			return &r.few[i]
		}
	}
	return r.more[g]
}

// learn remembers what a client may do.
func (r *rights) learn(k known) *known {
	if r.count < fewKnown {
		r.few[r.count] = k
		r.count++
		return &r.few[r.count-1]
	}
	if r.more == nil || len(r.more) >= maxKnown {
		r.more = map[guarded]*known{}
	}
	kept := k // So that only this one is made on the heap.
	r.more[k.guarded] = &kept
	return &kept
}

// sees says the same as may, of one resource among many that are listed: a denial
// only leaves something out, and is not noted.
func (c *call) sees(op auth.Operation, t auth.ResourceType, name string) bool {
	rules := c.rules()
	return rules == nil || rules.Allows(c.rights.request(op, t, name))
}

func (r *rights) request(op auth.Operation, t auth.ResourceType, name string) auth.Request {
	return auth.Request{Principal: r.who, Host: r.host, Operation: op, Type: t, Name: name}
}

// mayCluster says whether the client may do something with the cluster.
func (c *call) mayCluster(op auth.Operation) bool {
	return c.may(op, auth.Cluster, auth.ClusterName)
}

// needsCluster is the error for who may not.
func (c *call) needsCluster(op auth.Operation) error {
	if c.mayCluster(op) {
		return nil
	}
	return kerr.ClusterAuthorizationFailed
}

// seesCluster says the same, and notes nothing.
func (c *call) seesCluster(op auth.Operation) bool {
	return c.sees(op, auth.Cluster, auth.ClusterName)
}

// mayCreate says whether the client may create a topic: by its name, or any.
func (c *call) mayCreate(topic string) bool {
	return c.seesCluster(auth.Create) || c.may(auth.Create, auth.Topic, topic)
}

// mayProduce says whether the client may produce anything with sequence numbers. Who
// may write to some topic may, and if there is none it is the cluster's own right that
// lacks (KIP-679).
func (c *call) mayProduce() bool {
	rules := c.rules()
	return rules == nil || rules.AnyOf(c.rights.who, c.rights.host, auth.Write, auth.Topic) || c.mayCluster(auth.IdempotentWrite)
}

// split parts names by what the client may do with them.
func (c *call) split(op auth.Operation, t auth.ResourceType, names []string) (allowed, denied []string) {
	if c.rules() == nil {
		return names, nil
	}
	for _, name := range names {
		if c.may(op, t, name) {
			allowed = append(allowed, name)
		} else {
			denied = append(denied, name)
		}
	}
	return allowed, denied
}

// operations returns what the client may do with a resource, as the wire has it.
func (c *call) operations(t auth.ResourceType, name string) int32 {
	if rules := c.rules(); rules != nil {
		return rules.AuthorizedOperations(c.rights.who, c.rights.host, t, name)
	}
	return int32(t.Operations())
}

// clusterOperations does so for the cluster. Who may not describe it is told of none,
// as in Kafka.
func (c *call) clusterOperations() int32 {
	if !c.seesCluster(auth.Describe) {
		return 0
	}
	return c.operations(auth.Cluster, auth.ClusterName)
}
