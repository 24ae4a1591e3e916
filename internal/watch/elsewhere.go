package watch

import (
	"context"
	"slices"
	"time"

	"muster/internal/metadata"
)

// On a fleet, groups that this broker coordinates read partitions that others lead. A
// pass asks for those that the pass before came across: to collect all positions first
// would keep a million of them in memory.

const (
	// askTimeout is how long other brokers have to answer.
	askTimeout = 3 * time.Second
	// maxReaders is of how many readers of a partition another broker is asked. As a rule
	// there is one for each group.
	maxReaders = 32
	// maxReaderBytes is how long the client id and the host of a reader may be of whom
	// another broker is asked. Who has a longer one is not known.
	maxReaderBytes = 512
)

// readers are members that have a partition.
type readers struct{ list []Reader }

// answered is what a leader said of a partition, and of which readers.
type answered struct {
	Answer
	readers []Reader
}

// askOthers asks the leaders of the partitions that the last pass came across.
func (x *pass) askOthers(ctx context.Context) map[Part]*answered {
	if len(x.w.asked) == 0 {
		return nil
	}
	var questions []Question
	for part, r := range x.w.asked {
		if is, leader := x.leader(part.Topic, part.Partition); is && leader != x.w.opts.Node && leader != metadata.NoBroker {
			questions = append(questions, Question{part.Topic, part.Partition, leader, r.list})
		}
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	answers := x.w.opts.Source.Elsewhere(ctx, questions)
	out := make(map[Part]*answered, len(questions))
	for i, q := range questions {
		a := &answered{readers: q.Readers}
		if i < len(answers) {
			a.Answer = answers[i]
		}
		out[Part{q.Topic, q.Partition}] = a
	}
	return out
}

// askNext has the next pass ask for a partition, and for who has it.
func (x *pass) askNext(part Part, owned *ownedPart) {
	r := x.asked[part]
	if r == nil {
		r = &readers{}
		x.asked[part] = r
	}
	if owned == nil || len(r.list) == maxReaders || slices.Contains(r.list, owned.member.Reader) {
		return
	}
	if who := owned.member.Reader; len(who.ClientID)+len(who.Host) <= maxReaderBytes {
		r.list = append(r.list, who)
	}
}
