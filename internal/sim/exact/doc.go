// Package exact simulates transactions across partitions: the transaction
// coordinator, the group coordinator, the partitions and their clients, over a
// store and a network that fail, and checks that each input is copied to the
// output exactly once.
//
// A run is one seed: one source of randomness, one heap of events, one clock
// that jumps from event to event. The same seed gives the same run.
//
//	copier ⇄ network ⇄ broker{pump{txn.Shard}, pump{group.Shard}, partition.Partition} → store
//	reader ⇄            ⇅ markers, questions
//
// What is simulated is the code: both cores, the pump under them, the partitions
// with their producer state, and the logs of package store/mem. Only what carries
// them is played here: the handlers, the requests between brokers, goroutines and
// clocks, and what makes a store fail.
//
// Some copiers have an input partition for themselves, others share theirs as
// members of a group, and are fenced by its generations (team.go). Transactions
// write to a topic too that goes and comes back under the same name, log start moves
// through what is open (side.go), and what no one uses is forgotten (expiry.go).
//
// Below version 2 of transactions two things are taken from clients and from the
// network that would break any broker, Kafka's too: a client's requests to
// coordinators do not arrive after it has given them up, and a marker does not reach
// a leader that is new since it was sent. And a topic that is made anew is led under
// higher epochs than the one before it: see world.firstEpoch.
//
// In runs of their own (tails.go) servers come back without the last that they had
// acknowledged, of all logs at once or of some. Clients and brokers remember it.
//
// What the logs say is read a second time by a model that shares no code with
// them. Every batch that enters a log is held against it (model.go), and so is
// every answer (check.go). In the calm phase that ends each run all transactions
// must end, and everything must have been copied once (calm.go).
package exact
