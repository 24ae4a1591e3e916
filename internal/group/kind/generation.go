package kind

import "math"

// A number of a generation must not be given out twice to the same member. One that
// has missed the second would take it for the first, commit with it, and be
// believed: a static member that has not joined again, or a leader whose assignment
// comes late. But a generation is told to its members before it is stored, and a
// store may even lose the end of its log. So the first generation that is formed
// after a load leaps to a number that no life of the shard before has used: over the
// rest of a block of numbers, and in the next one to a share that depends on the
// leader epoch, which is another one after such a loss, and on how many lives have
// leapt in the same rebalance. The shares of 256 leader epochs fit into a block: a log that
// goes back to the same generation again and again repeats a number after that many.
const (
	GenerationBlock = 1 << 14
	GenerationShare = 16
	LivesPerEpoch   = 4
)

// After returns the number of the next generation. To clients a negative one means
// that there is none, so after the last it begins again.
func After(generation int32) int32 {
	if generation == math.MaxInt32 {
		return 1
	}
	return generation + 1
}

// NextAfterLoad returns the number of the first generation that is formed after a load.
func NextAfterLoad(generation, epoch int32, lives int16) int32 {
	if generation > math.MaxInt32-2*GenerationBlock {
		return After(generation)
	}
	share := (int64(epoch)*LivesPerEpoch + int64(lives%LivesPerEpoch)) % (GenerationBlock / GenerationShare)
	return (generation/GenerationBlock+1)*GenerationBlock + int32(share)*GenerationShare
}
