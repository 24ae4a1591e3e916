package config

import "testing"

// What the broker asks of a topic depends on the store and, in Redis, on the layout.
func TestATopicHasTheTraitsOfItsLayout(t *testing.T) {
	whole := Traits{Dense: true, Transactions: true}
	for _, c := range []struct {
		store, layout string
		want          Traits
	}{
		{"disk", "stream", whole},
		{"mem", "log", whole},
		{"redis", "log", whole},
		{"redis", "stream", Traits{Records: true, SharedWriters: true, Timed: true}},
		{"redis", "indexed", Traits{Dense: true, Transactions: true, Records: true, SharedWriters: true}},
		{"redis", InternalLayout, whole},
	} {
		b, err := NewBroker(map[string]string{"muster.store": c.store})
		if err != nil {
			t.Fatal(err)
		}
		if got := NewTopic(b, map[string]string{"muster.redis.layout": c.layout}).Traits; got != c.want {
			t.Errorf("%s, %s: %+v", c.store, c.layout, got)
		}
	}
	for _, name := range RedisLayouts() {
		if err := CheckTopic("muster.redis.layout", name); err != nil {
			t.Error(err)
		}
	}
}
