package config

// Traits are what the rest of the broker must know of how a topic is kept. Which
// layout that is concerns the storage engine alone.
type Traits struct {
	// Dense says that the difference of two offsets is a number of records.
	Dense bool
	// Transactions says that it can hold transactional records and markers.
	Transactions bool
	// Records says that it keeps records one by one and not in batches as they came.
	Records bool
	// SharedWriters says that Redis clients may append to it.
	SharedWriters bool
	// Timed says that the upper bits of an offset are the time, all but SequenceBits.
	Timed bool
}

// plain is how a topic is kept elsewhere than in Redis.
var plain = Traits{Dense: true, Transactions: true}

// redisLayouts are the values of muster.redis.layout.
var redisLayouts = []struct {
	name string
	Traits
}{
	{TransactionalLayout, Traits{Dense: true, Transactions: true, Records: true, SharedWriters: true}},
	{"stream", Traits{Records: true, SharedWriters: true, Timed: true}},
	{InternalLayout, plain},
}

const (
	// TransactionalLayout is the layout of topics in Redis that are to hold transactions.
	TransactionalLayout = "indexed"
	// InternalLayout is that of the broker's own topics.
	InternalLayout = "log"
)

// RedisLayouts returns the names of the layouts that a topic in Redis can have.
func RedisLayouts() []string {
	var names []string
	for _, l := range redisLayouts {
		names = append(names, l.name)
	}
	return names
}

// streamPrefix is what the keys of the streams begin with in which Redis clients find a topic's
// records; "" if there are none.
func streamPrefix(b *Broker, t Traits) string {
	if !t.SharedWriters {
		return ""
	}
	return b.Get("muster.redis.prefix")
}

const redisStore = "redis"

// Store is where records are kept: in Redis also if only its URL is set.
func (b *Broker) Store() string {
	if b.Get("muster.redis.url") != "" && !b.IsSet("muster.store") {
		return redisStore
	}
	return b.Get("muster.store")
}

// traitsOf returns how a topic is kept that has this layout in Redis.
func traitsOf(b *Broker, layout string) Traits {
	if b.Store() != redisStore {
		return plain
	}
	for _, l := range redisLayouts {
		if l.name == layout {
			return l.Traits
		}
	}
	return plain
}
