package sim

import "muster/internal/sim/seeds"

// enoughOfConsumers is the same of runs with consumer groups.
var enoughOfConsumers = seeds.Counts{
	// The protocol, by request and error code.
	"ConsumerGroupHeartbeat 0": 40000, "ConsumerGroupHeartbeat 25": 240, "ConsumerGroupHeartbeat 81": 180, "ConsumerGroupHeartbeat 110": 450, "ConsumerGroupHeartbeat 111": 350,
	"OffsetCommit 0": 20000, "OffsetCommit 25": 400, "OffsetCommit 35": 200, "OffsetCommit 113": 400, "OffsetFetch 0": 4500, "OffsetDelete 0": 500, "OffsetDelete 86": 500,
	"TxnOffsetCommit 0": 30000, "TxnOffsetCommit 22": 200, "TxnOffsetCommit 25": 300, "DeleteGroups 0": 200, "DeleteGroups 68": 120,
	"ConsumerGroupDescribe 0": 200, "ConsumerGroupDescribe 69": 90,

	// What groups and members go through.
	"partition given": 7500, "partition let go of": 2200, "partition given back while it was let go of": 30, "member has to let go": 1300, "member waits for others to let go": 1300,
	"target made": 4000, "target made by a task": 1900, "target is old when it is made": 80, "target moves while a member lets go": 60,
	"heartbeat of the previous epoch after a lost answer": 130, "heartbeat answered after it had waited": 1800, "heartbeat overtaken by the next": 20, "rogue heartbeat": 500,
	"member joins again in state stable": 60, "fenced by the rebalance timeout": 100, "fenced by the session timeout": 1000,
	"consumer gone by leave": 650, "consumer removed by an administrator": 60, "consumer group gone": 140,
	"static member left for a while": 160, "static member taken over": 100, "commit of an older epoch taken": 20, "pattern resolved": 200, "pattern resolved late": 10,
	"silence stored": 700, "silence counts after a load": 75, "member heard of after its silence was stored": 3,

	// What goes wrong.
	"consumer group loaded while it is Reconciling": 60, "consumer group loaded while it is Assigning": 20, "load": 1300, "log lost its tail": 90, "subscription lost with the end of the log": 5, "compaction": 650,
	"records lost in a crash": 70, "durable but unanswered at a crash": 40, "append failed": 400, "append fenced": 300, "takeover": 280, "coordinator crash": 200, "request while loading": 4500,
	"connection cut": 450, "duplicate request": 700, "request after its connection closed": 100, "request timed out": 350, "stale timer": 450, "slow task": 170, "slow to let go": 250,
	"fault aimed at granted": 45, "fault aimed at released": 25, "fault aimed at revoking": 40, "fault aimed at fencing": 45,
	"consumer crashed": 750, "consumer paused": 800, "consumer resubscribed": 750, "topic deleted": 330, "topic grown": 240,
}
