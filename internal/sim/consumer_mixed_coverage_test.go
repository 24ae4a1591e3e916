package sim

import "muster/internal/sim/seeds"

// enoughOfMigrations is the same of runs with groups that go over.
var enoughOfMigrations = seeds.Counts{
	// The protocols, by request and error code.
	"ConsumerGroupHeartbeat 0": 15000, "ConsumerGroupHeartbeat 69": 700, "ConsumerGroupHeartbeat 81": 150, "ConsumerGroupHeartbeat 110": 150, "ConsumerGroupHeartbeat 111": 120,
	"JoinGroup 0": 2500, "JoinGroup 23": 250, "JoinGroup 79": 450, "SyncGroup 0": 2300, "SyncGroup 27": 300, "Heartbeat 0": 2500, "Heartbeat 22": 100, "Heartbeat 27": 1500,
	"LeaveGroup 0": 600, "LeaveGroup 25": 60, "OffsetCommit 0": 8000, "OffsetCommit 25": 150, "OffsetCommit 113": 150, "TxnOffsetCommit 25": 500, "OffsetFetch 0": 3500,

	// What groups and members go through.
	"online upgrade in state Stable": 80, "online upgrade in state PreparingRebalance": 60, "online upgrade in state CompletingRebalance": 20, "offline upgrade": 50, "join answered when its group was upgraded": 55,
	"online downgrade": 160, "online downgrade without a rebalance": 6, "offline downgrade": 50, "rebalance started by downgrade": 150, "settled as a mixed group": 200,
	"member of the classic protocol joins a consumer group": 2000, "member of the classic protocol is told what it has": 1500,
	"fenced because it has not come to join": 15, "fenced because it has not come to sync": 12, "fenced by the session timeout": 900,
	"static member taken over": 120, "static member left for a while": 60, "generation formed": 700, "partition given": 3500, "partition let go of": 900,
	"member has to let go": 400, "member waits for others to let go": 800, "target made": 2500, "target made by a task": 1000, "commit of an older epoch taken": 100,
	"process goes over": 350, "process goes back": 300, "process uses both protocols": 180,
	"silence stored": 900, "silence counts after a load": 110, "member heard of after its silence was stored": 10,
	"calm with both protocols": 10, "calm with the classic protocol": 80, "calm with the consumer protocol": 80,

	// What goes wrong.
	"load": 700, "log lost its tail": 40, "compaction": 400, "takeover": 120, "coordinator crash": 100, "append failed": 120, "append fenced": 120, "request while loading": 1500,
	"connection cut": 250, "duplicate request": 500, "stale timer": 1000, "topic deleted": 200, "topic grown": 150,
}
