package redis

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"github.com/redis/rueidis"

	"muster/internal/store"
)

// List implements store.Store.
func (s *Store) List(ctx context.Context) ([]store.TopicPartition, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	primaries, err := s.primaries(ctx)
	if err != nil {
		return nil, attempt("list logs", err)
	}
	found := map[store.TopicPartition]struct{}{}
	for address, node := range primaries {
		if err := s.scan(ctx, node, found); err != nil {
			return nil, attempt("list logs at "+address, err)
		}
	}
	out := make([]store.TopicPartition, 0, len(found))
	for tp := range found {
		out = append(out, tp)
	}
	return out, nil
}

// primaries returns the servers that hold all keys between them. In a cluster
// the client knows replicas too, which hold nothing else and may be away.
func (s *Store) primaries(ctx context.Context) (map[string]rueidis.Client, error) {
	nodes := s.client.Nodes()
	if s.client.Mode() != rueidis.ClientModeCluster {
		return nodes, nil
	}
	var ranges []rueidis.RedisMessage
	err := rueidis.ErrNoSlot
	for _, node := range nodes {
		bounded, cancel := s.bounded(ctx)
		ranges, err = node.Do(bounded, node.B().ClusterSlots().Build()).ToArray()
		if cancel(); err == nil {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	found := map[string]rueidis.Client{}
	for _, r := range wrapReplies(ranges) {
		fields := r.list()
		if len(fields) < 3 || len(fields[2].list()) < 2 {
			return nil, fmt.Errorf("%w: CLUSTER SLOTS", store.ErrStorage)
		}
		primary := fields[2].list()
		address := net.JoinHostPort(primary[0].text(), strconv.FormatInt(primary[1].int(), 10))
		if found[address] = nodes[address]; found[address] == nil {
			// It goes by another name here, so that all are asked.
			return nodes, nil
		}
	}
	return found, nil
}

// scan finds the logs of one server by their meta keys.
func (s *Store) scan(ctx context.Context, node rueidis.Client, found map[store.TopicPartition]struct{}) error {
	pattern := "{" + escapeGlob(s.prefix) + ":*}" + metaSuffix
	for cursor := uint64(0); ; {
		bounded, cancel := s.bounded(ctx)
		page, err := node.Do(bounded, node.B().Scan().Cursor(cursor).Match(pattern).Count(1000).Build()).AsScanEntry()
		cancel()
		if err != nil {
			return err
		}
		for _, key := range page.Elements {
			if tp, ok := parseMetaKey(s.prefix, key); ok {
				found[tp] = struct{}{}
			}
		}
		if cursor = page.Cursor; cursor == 0 {
			return nil
		}
	}
}
