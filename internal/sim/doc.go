// Package sim runs the group coordinator's core against simulated clients, a
// simulated network and simulated brokers that fail, and checks what clients
// see.
//
// A run is one seed: one source of randomness, one heap of events, one clock
// that jumps from event to event, no goroutine. The same seed gives the same
// run, so a failure is replayed by its number.
//
//	client ⇄ network ⇄ broker{coordinator{group.Shard}} → log
//
// The coordinator here is a model of the shell in package coordinator: it
// appends records with a delay, holds replies back until their records are
// durable, fails, loads again, and is fenced when another broker takes over.
// Every step of a shard is compared with what the rules of the protocol say must
// happen (files expect_*.go), and every answer that leaves a broker with what
// was promised before (files check_*.go).
//
// A run has a chaotic phase, in which which faults happen is itself chosen by
// the seed, and a calm one, in which every group must come to rest.
package sim
