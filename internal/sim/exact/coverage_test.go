package exact

import "muster/internal/sim/seeds"

// enough is how often things must happen in 1,000 seeds, about a third of how
// often they do. A simulator in which they do not happen checks nothing.
var enough = seeds.Counts{
	// The protocol, by request and error code.
	"DescribeTransactions 0": 2000, "DescribeTransactions 105": 10, "DescribeTransactions 14": 40, "DescribeTransactions 16": 20, "EndTxn v4 0": 9000,
	"EndTxn v4 48": 50, "EndTxn v4 51": 2000, "EndTxn v4 90": 300, "EndTxn v5 0": 10000, "EndTxn v5 48": 20, "EndTxn v5 49": 15, "EndTxn v5 51": 9000,
	"EndTxn v5 90": 700, "InitProducerID 0": 3000, "InitProducerID 51": 9000, "InitProducerID 90": 30, "Produce v10 0": 10000, "Produce v10 19": 30,
	"Produce v10 20": 20, "Produce v10 47": 90, "Produce v10 56": 30, "Produce v10 6": 200, "Produce v11 0": 7000, "Produce v11 19": 40,
	"Produce v11 47": 70, "Produce v11 56": 30, "Produce v11 6": 100, "Produce v12 0": 20000, "Produce v12 19": 400, "Produce v12 20": 60,
	"Produce v12 47": 300, "Produce v12 51": 1000, "Produce v12 56": 80, "Produce v12 6": 400, "TxnOffsetCommit 0": 10000, "TxnOffsetCommit 14": 90,
	"TxnOffsetCommit 15": 200, "TxnOffsetCommit 47": 300, "TxnOffsetCommit 48": 30, "TxnOffsetCommit 51": 40, "marker answered by 0": 40000,
	"marker answered by 20": 50, "marker answered by 47": 1000, "marker answered by 52": 10, "marker answered by 56": 100, "marker answered by 6": 1000,
	"partition added 0": 30000, "partition added 49": 100, "partition added 51": 4000, "partition added 90": 800, "partition verified 0": 20000,
	"partition verified 120": 100, "partition verified 51": 40, "partition verified 90": 100,

	// The team: who is in it, who is not any more, and who waits for whom.
	"Heartbeat 0": 10000, "Heartbeat 22": 10, "Heartbeat 25": 200, "Heartbeat 27": 1000, "Heartbeat 82": 100, "JoinGroup 0": 2000, "JoinGroup 25": 100, "JoinGroup 79": 1000,
	"JoinGroup 82": 90, "SyncGroup 0": 2000, "SyncGroup 22": 3, "SyncGroup 25": 80, "SyncGroup 27": 100, "SyncGroup 82": 10, "TxnOffsetCommit 22": 80, "TxnOffsetCommit 25": 20,
	"TxnOffsetCommit 82": 10, "abort because of a rebalance": 30, "generation of the team": 900, "joins while a transaction goes on": 400,
	"offsets committed by a member": 4000, "owner parked by 88": 25,

	// Topics that go, and log start that moves.
	"DeleteRecords moves log start": 1000, "compaction of side": 100, "coordinator asked for offsets of a topic that is gone": 1000, "log start moves into an aborted transaction": 200,
	"log start moves over an open transaction": 70, "offset removed with its topic": 500, "partition added 3": 100, "partition added 55": 100,
	"pending offset removed with its topic": 50, "reader begins anew": 1000, "retention moves log start": 300, "topic made anew": 500,
	"topic removed": 500, "topic removed with a transaction open": 100,

	// What is forgotten after a while, and who comes back then.
	"producer comes back after it expired in a partition": 20, "producer id expired in a partition": 300, "transactional id expired": 900,
	"EndTxn v4 49": 20, "Produce v12 49": 100,

	// What transactions go through.
	"abort at random": 4000, "abort because of an error": 3000, "aborted batch left out": 10000, "client asks for a new epoch": 800,
	"client gave up": 1000, "client gone for good": 200, "client gone in a transaction": 100, "client killed": 800, "client paused": 800,
	"client started": 3000, "committed record read": 100000, "empty abort": 500, "fetch with several aborted transactions": 4000, "input copied": 60000,
	"marker ends a transaction": 40000, "marker of before a load": 60, "marker sent again later": 2000, "marker with nothing open": 2000,
	"pending offset became visible": 20000, "producer id rotated": 100, "question of a leader": 30000, "state CompleteAbort": 7000,
	"state CompleteCommit": 10000, "state Empty": 4000, "state Ongoing": 40000, "state PrepareAbort": 7000, "state PrepareCommit": 10000,
	"state lost": 40, "transaction aborted": 5000, "transaction begun": 20000, "transaction committed": 10000, "unstable offset": 1000,

	// What goes wrong.
	"answer lost": 2000, "answer of a deposed coordinator withheld": 400, "append answered late": 700, "append begun a moment later": 60000,
	"append failed": 800, "append failed but stored": 100, "append fenced": 200, "append stored after it had failed": 70, "broker crashed": 500,
	"broker frozen": 500, "compaction of __consumer_offsets": 200, "compaction of __transaction_state": 200, "compaction of in": 200,
	"compaction of out": 900, "leader moved": 900, "load of __consumer_offsets": 1000, "load of __transaction_state": 2000, "not replicated": 400,
	"open failed": 50, "request lost": 2000, "request timed out": 20000, "request twice": 3000, "request while loading": 7000, "shard lost": 1000,
	"slow answer to a leader": 400, "slow append": 2000, "slow message": 7000, "sync failed": 300, "unsynced tail lost": 200, "zombie made": 800,
}

// enoughLost is the same for runs in which servers lose their tails.
var enoughLost = seeds.Counts{
	"server lost its tail": 2000, "tail of __transaction_state lost": 800, "tail of __consumer_offsets lost": 600, "tail of out lost": 1000,
	"leader epoch raised after a loss": 2000, "shard loaded again after a restart": 1000, "committed transaction lost as a whole": 200,
	"answer of a coordinator that was replaced": 60, "marker answered by 52": 40, "EndTxn v4 90": 300, "EndTxn v5 90": 300,
}

// defaultSeeds is how many a test run simulates.
const defaultSeeds = 250
