package redis

import (
	"context"

	"github.com/redis/rueidis"

	"muster/internal/store"
)

// Lengths implements store.Lengths: where an entry is a record, their number is that of the stream.
func (s *Store) Lengths(ctx context.Context, logs []store.TopicPartition) ([]int64, error) {
	if err := s.check(); err != nil || len(logs) == 0 {
		return nil, err
	}
	cmds := make(rueidis.Commands, 0, 2*len(logs))
	for _, tp := range logs {
		k := logKeys(s.prefix, tp)
		cmds = append(cmds, s.client.B().Hget().Key(k.meta).Field("layout").Build(), s.client.B().Xlen().Key(k.stream).Build())
	}
	r := s.doMulti(ctx, cmds...)
	out := make([]int64, len(logs))
	for i := range logs {
		layout, err := r[2*i].ToString()
		if err != nil && !rueidis.IsRedisNil(err) {
			return nil, attempt("count records", err)
		}
		out[i] = -1
		if l := store.Layout(layout); l == store.LayoutStream || l == store.LayoutIndexed {
			if out[i], err = r[2*i+1].AsInt64(); err != nil {
				return nil, attempt("count records", err)
			}
		}
	}
	return out, nil
}
