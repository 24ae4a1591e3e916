package config

import (
	"testing"

	"muster/internal/assert"
)

// A broker that is given the URL of a Redis keeps records there, and topics have the traits of
// their layouts, whether it is told the store by name or not.
func TestTheURLOfARedisIsEnoughForTheTraitsOfItsLayouts(t *testing.T) {
	for _, c := range []struct {
		set   map[string]string
		store string
		dense bool
	}{
		{map[string]string{"muster.redis.url": "redis://127.0.0.1"}, "redis", false},
		{map[string]string{"muster.redis.url": "redis://127.0.0.1", "muster.store": "redis"}, "redis", false},
		{map[string]string{"muster.redis.url": "redis://127.0.0.1", "muster.store": "mem"}, "mem", true},
		{nil, "disk", true},
	} {
		b, err := NewBroker(c.set)
		assert.Must(t, err)
		assert.Equal(t, b.Store(), c.store, "the store with %v", c.set)
		traits := NewTopic(b, map[string]string{"muster.redis.layout": "stream"}).Traits
		assert.Equal(t, traits.Dense, c.dense, "whether offsets are dense with %v", c.set)
		assert.Equal(t, traits.Transactions, c.dense, "whether there are transactions with %v", c.set)
	}
}
