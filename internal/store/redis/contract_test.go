package redis

import (
	"context"
	"fmt"
	"testing"

	"github.com/redis/rueidis"

	"muster/internal/redistest"
	"muster/internal/store"
	"muster/internal/store/mem"
	"muster/internal/store/redis/conn"
	"muster/internal/store/storetest"
)

// harness opens stores for the suite, each with keys of its own.
func harness(url func(t *testing.T) string, cfg store.LogConfig) func(t *testing.T) storetest.Harness {
	return func(t *testing.T) storetest.Harness {
		at, prefix := url(t), redistest.Prefix(t)
		var s *Store
		var client rueidis.Client
		open := func(t *testing.T) {
			t.Helper()
			var err error
			if client, err = conn.Connect(context.Background(), at, conn.Options{DialTimeout: patience, CommandTimeout: patience}); err != nil {
				t.Fatal(err)
			}
			s = New(client, Options{Prefix: prefix, Timeout: patience})
		}
		end := func(t *testing.T) {
			t.Helper()
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			client.Close()
		}
		open(t)
		t.Cleanup(func() { end(t) })
		reopen := func(t *testing.T) store.Store {
			t.Helper()
			end(t)
			open(t)
			return s
		}
		return storetest.Harness{Store: s, Reopen: reopen, Config: cfg, NoTransactions: cfg.Layout == store.LayoutStream}
	}
}

func single(t *testing.T) string { return redistest.Shared(t, redistest.KindSingle).URL() }

var layouts = map[string]store.LogConfig{
	"Log":     {Layout: store.LayoutLog},
	"Stream":  {Layout: store.LayoutStream},
	"Indexed": {Layout: store.LayoutIndexed},
}

// sequences are further numberings of the stream layout.
var sequences = map[string]store.LogConfig{
	"StreamOf1Bit":   {Layout: store.LayoutStream, SequenceBits: 1},
	"StreamOf21Bits": {Layout: store.LayoutStream, SequenceBits: 21},
}

// TestContract runs the suite as a user who has the rights that conn.CheckRights looks for,
// and no others.
func TestContract(t *testing.T) {
	t.Parallel()
	url := limited(t)
	for name, cfg := range layouts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, harness(func(*testing.T) string { return url }, cfg))
		})
	}
}

func TestSameAsMemoryEngine(t *testing.T) {
	t.Parallel()
	model := func(t *testing.T) storetest.Harness {
		s := mem.New()
		t.Cleanup(func() { s.Close() })
		return storetest.Harness{Store: s}
	}
	for _, configs := range []map[string]store.LogConfig{layouts, sequences} {
		for name, cfg := range configs {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				for seed := range uint64(4) {
					t.Run(fmt.Sprint(seed), func(t *testing.T) {
						t.Parallel()
						storetest.Metamorphic(t, model, harness(single, cfg), seed)
					})
				}
			})
		}
	}
}
