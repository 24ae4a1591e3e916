package redis

import "context"

// adopt makes a log of a stream that has entries but no meta hash: one of a
// Redis application, or one of ours whose meta hash was lost. It starts at the
// first entry. Its consumer groups stay as they are.
func (l *log) adopt(ctx context.Context, f *found) error {
	if err := l.layout.adopt(ctx, f); err != nil {
		return err
	}
	args := []string{"start", l.layout.position(l.start), "end", l.layout.position(l.tail.next), "maxts", decimal(l.tail.maxTimestamp)}
	if len(l.tail.epochs) > 0 {
		args = append(args, "epochs", formatEpochs(l.tail.epochs))
	}
	_, err := l.own(ctx, "adopt", setScript, args...)
	return err
}
