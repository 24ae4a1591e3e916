package sim

import "muster/internal/sim/seeds"

// enough is how often things must happen in 1,000 seeds, about a third of how
// often they do. A simulator in which they do not happen checks nothing.
var enough = seeds.Counts{
	// The protocol, by request and error code.
	"JoinGroup 0": 3000, "JoinGroup 23": 30, "JoinGroup 25": 400, "JoinGroup 79": 2000, "JoinGroup 81": 700, "JoinGroup 82": 8,
	"SyncGroup 0": 7000, "SyncGroup 22": 250, "SyncGroup 25": 300, "SyncGroup 27": 300, "SyncGroup 82": 25,
	"Heartbeat 0": 30000, "Heartbeat 22": 30, "Heartbeat 25": 200, "Heartbeat 27": 4000, "Heartbeat 82": 150,
	"LeaveGroup 0": 1400, "LeaveGroup 25": 600, "LeaveGroup 82": 3,
	"OffsetCommit 0": 50000, "OffsetCommit 12": 1000, "OffsetCommit 22": 30, "OffsetCommit 25": 500, "OffsetCommit 27": 800, "OffsetCommit 82": 150,
	"OffsetFetch 0": 8000, "OffsetDelete 0": 800, "OffsetDelete 68": 40, "OffsetDelete 69": 100, "OffsetDelete 86": 1000,
	"DeleteGroups 0": 250, "DeleteGroups 68": 300, "DeleteGroups 69": 120, "DescribeGroups 0": 600, "DescribeGroups 69": 15, "ListGroups 0": 300,

	// Transactions.
	"TxnOffsetCommit 0": 6000, "TxnOffsetCommit 3": 600, "TxnOffsetCommit 12": 150, "TxnOffsetCommit 22": 60, "TxnOffsetCommit 25": 90, "TxnOffsetCommit 47": 40,
	"TxnOffsetCommit 48": 30, "TxnOffsetCommit 51": 3, "TxnOffsetCommit 120": 5, "WriteTxnMarkers 0": 4000, "WriteTxnMarkers 47": 200, "WriteTxnMarkers 52": 60,
	"late marker spares the next transaction": 60, "repeated marker": 150, "transaction whose end was lost": 8, "offset is unstable": 40, "aborted record compacted away": 2000,
	"compaction up to an open transaction": 10, "offset committed in a transaction": 6000, "question given up": 4, "fault aimed at marker": 20, "transaction coordinator replaced": 150,

	// What groups go through.
	"generation formed": 5000, "generation synced": 4000, "group became empty": 400, "group gone": 400,
	"initial delay extended": 400, "join phase ended by its timer": 100, "generation formed with pending members": 25,
	"rebalance started by add": 2500, "rebalance started by rejoin": 1500, "rebalance started by leave": 300,
	"rebalance started by expire": 600, "rebalance started by synced": 40, "rebalance started by replace": 20,
	"member gone by expire": 2000, "member gone by joined": 100, "member gone by synced": 40, "member gone by leave": 700, "member gone by refuse": 100,
	"static member gone by expire": 300, "static member gone by leave": 100, "static member gone by synced": 5,
	"static member kept without a join": 15, "static member fenced": 600, "static member replaced quietly": 400, "static member replaced with a rebalance": 20,
	"nobody but static members, who are waited for": 1, "new member expired in JoinGroup": 1, "pending member expired": 40,
	"loaded with more members than allowed": 15, "loaded in the middle of a rebalance": 800, "member that had left stays away": 400, "parked JoinGroup": 10000, "parked SyncGroup": 3000, "parked request answered by an error": 700,
	"silence stored": 600, "silence counts after a load": 150, "member heard of after its silence was stored": 35,
	"commit acknowledged": 50000, "offset expired": 150, "offsets reset": 15, "cooperative revocation": 250, "farewell": 80,

	// What goes wrong.
	"append failed": 300, "append failed but durable": 100, "append arrived after it had failed": 55, "append answered late": 400, "append begun a moment later": 20000,
	"append fenced": 300, "slow append": 400, "append of a part of what waits": 200, "log lost its tail": 170,
	"coordinator crash": 300, "records lost in a crash": 60, "durable but unanswered at a crash": 60, "parked requests lost in a crash": 150,
	"takeover": 400, "load": 1400, "request while loading": 3000, "compaction": 700, "parked request answered by NOT_COORDINATOR": 800,
	"connection cut": 500, "duplicate request": 800, "slow message": 1000, "request timed out": 200, "request after its connection closed": 30, "stale timer": 1500,
	"client crashed": 700, "client left": 300, "client paused": 700, "client restarted": 400, "client resubscribed": 400,
	"client died with a pending member id": 20, "client too busy to join": 300, "slow to sync": 600, "outage": 300,
	"topic deleted": 250, "topic grown": 200, "offset of a topic that went while nobody led": 150,
}

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

// defaultSeeds is how many a test run simulates.
const (
	defaultSeeds   = 1000
	consumerSeeds  = 150
	migrationSeeds = 150
)
