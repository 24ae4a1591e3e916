package web

import (
	"net/http"

	"muster/internal/auth"
)

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
