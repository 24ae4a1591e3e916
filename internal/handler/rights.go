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

// maxTold is how many denials of a request are remembered, so that a request with a
// million names does not take more than its own memory.
const maxTold = 1000

// rights is what is known of the rights of a request's client.
type rights struct {
	image *metadata.Image // of which rules is known
	rules *auth.Index     // nil if everything is allowed
	host  string          // as rules have it; only if there are rules
	memo  *auth.Memo      // only if there are rules
	told  map[auth.Request]struct{}
}

// rules returns the rules to ask, nil if everything is allowed. They are those of the
// call's image, which requests that wait take anew.
func (c *call) rules() *auth.Index {
	r := &c.rights
	if r.image == c.image {
		return r.rules
	}
	r.image, r.rules = c.image, nil
	if c.image.Authorizes() && !c.image.Rules.IsSuper(c.principal(), c.origin.Groups) && !c.fromBroker() {
		r.rules = c.image.Rules
		if r.memo == nil {
			m := c.remembered()
			r.host, r.memo = m.hostOf(c), &m.rights
		}
	}
	return r.rules
}

// may says whether the client may do something with a resource. A denial is noted,
// once for each request.
func (c *call) may(op auth.Operation, t auth.ResourceType, name string) bool {
	rules := c.rules()
	if rules == nil || c.rights.memo.Rights(rules, c.asked(op, t, name)).Has(op) {
		return true
	}
	if q := c.asked(op, t, name); c.rights.tell(q) {
		c.denied(rules, q)
	}
	return false
}

// tell says whether a denial is to be noted, because it was not yet.
func (r *rights) tell(q auth.Request) bool {
	if _, told := r.told[q]; told {
		return false
	}
	if r.told == nil || len(r.told) >= maxTold {
		r.told = map[auth.Request]struct{}{}
	}
	r.told[q] = struct{}{}
	return true
}

// sees says the same as may, of one resource among many that are listed: a denial
// only leaves something out, and is not noted.
func (c *call) sees(op auth.Operation, t auth.ResourceType, name string) bool {
	rules := c.rules()
	return rules == nil || rules.Allows(c.asked(op, t, name))
}

// asked is the question to the rules; there must be some.
func (c *call) asked(op auth.Operation, t auth.ResourceType, name string) auth.Request {
	return auth.Request{Principal: c.principal(), Groups: c.origin.Groups, Host: c.rights.host, Operation: op, Type: t, Name: name}
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
	return rules == nil || rules.AnyOf(c.asked(auth.Write, auth.Topic, "")) || c.mayCluster(auth.IdempotentWrite)
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
		return rules.AuthorizedOperations(c.asked(auth.UnknownOperation, t, name))
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
