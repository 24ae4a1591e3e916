// Package sim runs the group coordinator against simulated clients, a simulated
// network and simulated brokers that fail, and checks what clients see.
//
// A run is one seed: one source of randomness, one heap of events, one clock
// that jumps from event to event, no goroutine. The same seed gives the same
// run, so a failure is replayed by its number.
//
//	client ⇄ network ⇄ broker{pump{group.Shard}} → log
//
// What is simulated is the code: the core, and the pump that stands between it
// and its log (package coordinator/pump). Only what the runtime adds to them is
// played here: locks, clocks and goroutines by the event heap, and a log that
// delays appends, fails, stores what it says has failed, at once or later, loses
// its tail, and belongs to the broker that opened it last. Every step of a shard is
// compared with what the rules of the protocol say must happen (files
// expect_*.go), and every answer that leaves a broker with what was promised
// before (files check_*.go).
//
// Groups of the consumer protocol (files consumer_*.go) have runs of their own, in the
// same world, with a classic group beside them in some. Their checker reads the
// records of each step without the core, and holds them against the invariants of the
// protocol; what clients are told to have is followed from answer to answer, until they
// say that they have let go of it or are fenced.
//
// Groups whose clients go over from one protocol to the other and back (files
// consumer_mixed_*.go) have runs of their own too. Such a group is held against the rules
// of what it is at the moment; when a step makes the other kind of it, what it was is
// turned into the other by the checker as well, and no one may have lost anything.
//
// A run has a chaotic phase, whose kinds of faults are themselves chosen by the
// seed, and a calm one, in which every group must come to rest.
package sim
