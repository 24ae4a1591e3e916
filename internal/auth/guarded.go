package auth

// AuditTopic is the topic with the audit log. It tells what everyone does, so a rule must
// name it, or a prefix of its name: one for all topics shows that it exists, and no more.
// Neither does allow.everyone.if.no.acl.found.
const AuditTopic = "__audit_log"

// visible is what a rule for all topics allows with such a topic.
const visible = Operations(1)<<Describe | Operations(1)<<DescribeConfigs

func guarded(t ResourceType, name string) bool { return t == Topic && name == AuditTopic }

// needsName says whether only a rule that names the resource allows a request.
func (q *Request) needsName() bool { return guarded(q.Type, q.Name) && !visible.Has(q.Operation) }

// guardedRights returns what someone may do with a resource that a rule must name.
func (x *Index) guardedRights(q Request) Operations {
	var named, wild verdicts
	var room askedTables
	for _, of := range x.tablesOf(&room, q) {
		named.add(of.ofLiteral(q.Host, q.Name))
		named.add(of.ofPrefixes(q.Host, q.Name))
		wild.add(of.ofWildcard(q.Host))
	}
	if x.allowEveryone && !x.named[q.Type].matches(q.Name) {
		return visible
	}
	return (named.allow.allowed() | wild.allow.allowed()&visible) &^ (named.deny | wild.deny).denied()
}
