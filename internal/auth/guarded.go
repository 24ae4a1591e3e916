package auth

// AuditTopic is the topic with the audit log. It tells what everybody does, so a rule must
// name it, or a prefix of its name: one for all topics shows that it exists, and no more.
// Neither does allow.everyone.if.no.acl.found.
const AuditTopic = "__audit_log"

// visible is what a rule for all topics allows with such a topic.
const visible = Operations(1)<<Describe | Operations(1)<<DescribeConfigs

func guarded(t ResourceType, name string) bool { return t == Topic && name == AuditTopic }

// needsName says whether only a rule that names the resource allows a request.
func (q *Request) needsName() bool { return guarded(q.Type, q.Name) && !visible.Has(q.Operation) }

// guardedRights returns what somebody may do with a resource that a rule must name.
func (x *Index) guardedRights(p Principal, host string, t ResourceType, name string) Operations {
	var named, wild verdicts
	for _, of := range [...]*table{x.own[p][t], x.own[Everyone][t]} {
		named.add(of.ofLiteral(host, name))
		named.add(of.ofPrefixes(host, name))
		wild.add(of.ofWildcard(host))
	}
	if x.allowEveryone && !x.named[t].matches(name) {
		return visible
	}
	return (named.allow.allowed() | wild.allow.allowed()&visible) &^ (named.deny | wild.deny).denied()
}
