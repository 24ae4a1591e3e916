package handler

import (
	"context"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
	"muster/internal/protocol"
)

//go:generate go test -run TestCompatibilityDocIsCurrent -rewrite .

// Entry is one API key that muster serves.
type Entry struct {
	Key int16
	// Min and Max are the versions that ApiVersions tells.
	Min, Max int16
	// ServedFrom is the first version that is really served, if that is not Min.
	ServedFrom int16
	// Note says for people what is special.
	Note string

	// between says that brokers send such requests to each other, several at a
	// time on one connection. They are answered beside it.
	between bool

	serve func(*Handler, context.Context, *call) (kmsg.Response, error)
	raw   func(*Handler, context.Context, *call) (*protocol.Response, error)
}

// Name returns the API's name.
func (e *Entry) Name() string { return kmsg.NameForKey(e.Key) }

// Needs says which rights requests need where there is an authorizer.
func (e *Entry) Needs() string {
	list, _ := auth.Needs(e.Key)
	var out []string
	for _, need := range list {
		out = append(out, need.String())
	}
	return strings.Join(out, "; ")
}

func (e *Entry) serveMin() int16 { return max(e.Min, e.ServedFrom) }

var table []Entry

// private are the keys that only brokers of the cluster send to each other. Clients are not told
// of them, and are answered as for keys that there are not.
var private []Entry

// init fills the tables, which cannot be literals because ApiVersions reads them.
func init() {
	table = slices.Concat(firstKeys(), laterKeys())
	private = []Entry{
		{Key: 83, Min: 0, Max: 0, serve: (*Handler).initializeShareGroupState, between: true},
		{Key: 84, Min: 0, Max: 0, serve: (*Handler).readShareGroupState, between: true},
		{Key: 85, Min: 0, Max: 1, serve: (*Handler).writeShareGroupState, between: true},
		{Key: 86, Min: 0, Max: 0, serve: (*Handler).deleteShareGroupState, between: true},
		{Key: 87, Min: 0, Max: 1, serve: (*Handler).readShareGroupStateSummary, between: true},
	}
}

// firstKeys are those up to 46.
func firstKeys() []Entry {
	return []Entry{
		{Key: 0, Min: 0, Max: 13, ServedFrom: 3, raw: (*Handler).produce, Note: "0 to 2 are advertised because some clients drop compression otherwise; message format v2 only"},
		{Key: 1, Min: 4, Max: 18, raw: (*Handler).fetch, Note: "incremental sessions, topic ids"},
		{Key: 2, Min: 1, Max: 11, serve: (*Handler).listOffsets, Note: "nothing is tiered, so -5 and -6 find nothing"},
		{Key: 3, Min: 0, Max: 13, serve: (*Handler).metadata},
		{Key: 8, Min: 2, Max: 10, serve: (*Handler).offsetCommit},
		{Key: 9, Min: 1, Max: 10, serve: (*Handler).offsetFetch},
		{Key: 10, Min: 0, Max: 6, serve: (*Handler).findCoordinator, Note: "groups, transactions, the state of share groups"},
		{Key: 11, Min: 0, Max: 9, serve: (*Handler).joinGroup},
		{Key: 12, Min: 0, Max: 4, serve: (*Handler).heartbeat},
		{Key: 13, Min: 0, Max: 5, serve: (*Handler).leaveGroup},
		{Key: 14, Min: 0, Max: 5, serve: (*Handler).syncGroup},
		{Key: 15, Min: 0, Max: 6, serve: (*Handler).describeGroups},
		{Key: 16, Min: 0, Max: 5, serve: (*Handler).listGroups},
		{Key: 17, Min: 0, Max: 1, serve: (*Handler).saslHandshake},
		{Key: 18, Min: 0, Max: 4, serve: (*Handler).apiVersions},
		{Key: 19, Min: 0, Max: 7, serve: (*Handler).createTopics},
		{Key: 20, Min: 0, Max: 6, serve: (*Handler).deleteTopics},
		{Key: 21, Min: 0, Max: 2, serve: (*Handler).deleteRecords},
		{Key: 22, Min: 0, Max: 5, serve: (*Handler).initProducerID},
		{Key: 23, Min: 0, Max: 4, serve: (*Handler).offsetForLeaderEpoch},
		{Key: 24, Min: 0, Max: 5, serve: (*Handler).addPartitionsToTxn, between: true, Note: "4 and 5 are for brokers of the cluster only"},
		{Key: 25, Min: 0, Max: 4, serve: (*Handler).addOffsetsToTxn},
		{Key: 26, Min: 0, Max: 5, serve: (*Handler).endTxn},
		{Key: 27, Min: 1, Max: 2, serve: (*Handler).writeTxnMarkers, between: true},
		{Key: 28, Min: 0, Max: 5, serve: (*Handler).txnOffsetCommit},
		{Key: 29, Min: 1, Max: 3, serve: (*Handler).describeACLs, Note: "topics, groups, transactional ids and the cluster"},
		{Key: 30, Min: 1, Max: 3, serve: (*Handler).createACLs, Note: "topics, groups, transactional ids and the cluster"},
		{Key: 31, Min: 1, Max: 3, serve: (*Handler).deleteACLs},
		{Key: 32, Min: 0, Max: 4, serve: (*Handler).describeConfigs, Note: "topics, brokers and groups"},
		{Key: 33, Min: 0, Max: 2, serve: (*Handler).alterConfigs, Note: "topics, brokers and groups"},
		{Key: 34, Min: 0, Max: 2, serve: (*Handler).alterReplicaLogDirs, Note: "a broker has one log directory"},
		{Key: 35, Min: 0, Max: 4, serve: (*Handler).describeLogDirs},
		{Key: 36, Min: 0, Max: 2, serve: (*Handler).saslAuthenticate, Note: "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER"},
		{Key: 37, Min: 0, Max: 3, serve: (*Handler).createPartitions},
		{Key: 42, Min: 0, Max: 2, serve: (*Handler).deleteGroups},
		{Key: 43, Min: 0, Max: 2, serve: (*Handler).electLeaders, Note: "the leader is always the only replica"},
		{Key: 44, Min: 0, Max: 1, serve: (*Handler).incrementalAlterConfigs, Note: "topics, brokers and groups"},
		{Key: 45, Min: 0, Max: 1, serve: (*Handler).alterPartitionReassignments, Note: "one replica per partition; moves leadership between brokers on Redis"},
		{Key: 46, Min: 0, Max: 0, serve: (*Handler).listPartitionReassignments, Note: "none is ever in progress: partitions move at once"},
	}
}

// laterKeys are those from 47 on.
func laterKeys() []Entry {
	return []Entry{
		{Key: 47, Min: 0, Max: 0, serve: (*Handler).offsetDelete},
		{Key: 48, Min: 0, Max: 1, serve: (*Handler).describeClientQuotas},
		{Key: 49, Min: 0, Max: 1, serve: (*Handler).alterClientQuotas, Note: "an ip is an address, not the name of a host"},
		{Key: 50, Min: 0, Max: 0, serve: (*Handler).describeUserSCRAMCredentials},
		{Key: 51, Min: 0, Max: 0, serve: (*Handler).alterUserSCRAMCredentials},
		{Key: 55, Min: 0, Max: 2, serve: (*Handler).describeQuorum, Note: "one voter, the controller"},
		{Key: 57, Min: 0, Max: 2, serve: (*Handler).updateFeatures, Note: "levels are fixed"},
		{Key: 60, Min: 0, Max: 2, serve: (*Handler).describeCluster},
		{Key: 61, Min: 0, Max: 0, serve: (*Handler).describeProducers},
		{Key: 65, Min: 0, Max: 0, serve: (*Handler).describeTransactions},
		{Key: 66, Min: 0, Max: 2, serve: (*Handler).listTransactions},
		{Key: 68, Min: 0, Max: 1, serve: (*Handler).consumerGroupHeartbeat},
		{Key: 69, Min: 0, Max: 1, serve: (*Handler).consumerGroupDescribe},
		{Key: 74, Min: 0, Max: 1, serve: (*Handler).listConfigResources, Note: "topics, brokers and groups; 0 asks for client metrics, of which there are none"},
		{Key: 75, Min: 0, Max: 0, serve: (*Handler).describeTopicPartitions},
		{Key: 76, Min: 1, Max: 1, serve: (*Handler).shareGroupHeartbeat},
		{Key: 77, Min: 1, Max: 1, serve: (*Handler).shareGroupDescribe},
		{Key: 78, Min: 1, Max: 2, raw: (*Handler).shareFetch},
		{Key: 79, Min: 1, Max: 2, serve: (*Handler).shareAcknowledge},
		{Key: 88, Min: 0, Max: 0, serve: (*Handler).streamsGroupHeartbeat, Note: "no warm-ups, no descriptions of topologies"},
		{Key: 89, Min: 0, Max: 0, serve: (*Handler).streamsGroupDescribe},
		{Key: 90, Min: 0, Max: 1, serve: (*Handler).describeShareGroupOffsets},
		{Key: 91, Min: 0, Max: 0, serve: (*Handler).alterShareGroupOffsets},
		{Key: 92, Min: 0, Max: 0, serve: (*Handler).deleteShareGroupOffsets},
	}
}

// Table returns all entries in the order of their keys.
func Table() []Entry { return slices.Clone(table) }

func entryFor(key int16) *Entry { return entryIn(table, key) }

// entryForBroker is entryFor for a broker of the cluster.
func entryForBroker(key int16) *Entry {
	if e := entryFor(key); e != nil {
		return e
	}
	return entryIn(private, key)
}

func entryIn(table []Entry, key int16) *Entry {
	i, ok := slices.BinarySearchFunc(table, key, func(e Entry, k int16) int { return int(e.Key) - int(k) })
	if !ok {
		return nil
	}
	return &table[i]
}
