package handler

import (
	"hash/maphash"
	"sync/atomic"
	"time"

	"muster/internal/protocol"
)

// Whether a group stands still because no one fetches, or although someone does, only
// the broker can say: it sees the fetches. So it remembers when each client last fetched
// each partition, as the members of groups are known, by client id and host.
//
// Every fetch comes here, so there is no lock and nothing is allocated: the table has a
// fixed size, which bounds it over all connections, and is a hash table whose entries
// are single words. A bucket is a cache line; in a full one the oldest entry goes, and
// someone who fetches is soon back. An entry is written once a second at most, so that
// processors need not take lines from each other.
const (
	fetchedBuckets = 1 << 16
	fetchedWays    = 8
)

// fetchedTable has 4 MB. An entry is a part of the hash of a client and a partition, and
// the second in which it was last fetched, from 1 on.
type fetchedTable [fetchedBuckets][fetchedWays]atomic.Uint64

// fetched remembers who fetches what.
type fetched struct {
	seed  maphash.Seed // So that no one can choose names that push out those of others.
	since time.Time
	now   func() time.Time
	table atomic.Pointer[fetchedTable] // nil until someone fetches
}

func newFetched(now func() time.Time) *fetched {
	return &fetched{seed: maphash.MakeSeed(), since: now(), now: now}
}

// fetcher is someone who fetches, at a moment.
type fetcher struct {
	of     *fetched
	who    uint64
	second uint32
}

// by returns who a request is from. It is asked once for a request.
func (f *fetched) by(clientID, host string) fetcher {
	return fetcher{f, f.who(clientID, host), f.second(f.now())}
}

func (f *fetched) who(clientID, host string) uint64 {
	return mix(maphash.String(f.seed, clientID), maphash.String(f.seed, host))
}

// second is a time in the form of an entry. A clock that went back is at the start.
func (f *fetched) second(t time.Time) uint32 {
	return uint32(max(t.Sub(f.since)/time.Second, 0)) + 1
}

// place hashes a client and a partition.
func (f *fetched) place(who uint64, topic string, partition int32) uint64 {
	return mix(mix(who, maphash.String(f.seed, topic)), uint64(uint32(partition)))
}

// mix makes one number of two, so that each bit of both matters everywhere.
func mix(a, b uint64) uint64 {
	a = (a ^ (b*0x9e3779b97f4a7c15 + 0x7f4a7c15)) * 0xff51afd7ed558ccd
	a = (a ^ a>>33) * 0xc4ceb9fe1a85ec53
	return a ^ a>>29
}

// note notes that the partition is fetched.
func (c *fetcher) note(topic string, partition int32) {
	if c.of == nil {
		return
	}
	table := c.of.table.Load()
	if table == nil {
		c.of.table.CompareAndSwap(nil, new(fetchedTable))
		table = c.of.table.Load()
	}
	hash := c.of.place(c.who, topic, partition)
	tag := hash >> 32
	bucket := &table[hash%fetchedBuckets]
	oldest, at := uint32(1<<32-1), 0
	for i := range bucket {
		entry := bucket[i].Load()
		second := uint32(entry) // 0 if there is none.
		if entry>>32 == tag && second != 0 {
			if second != c.second {
				bucket[i].Store(tag<<32 | uint64(c.second))
			}
			return
		}
		if second < oldest {
			oldest, at = second, i
		}
	}
	// Two that do this at once may lose one of the entries until its next fetch.
	bucket[at].Store(tag<<32 | uint64(c.second))
}

// fetchedLately is how long ago a fetch must be that may be forgotten: who has not fetched
// for so long counts as someone who does not.
const fetchedLately = time.Minute

// last returns when a partition was last fetched, zero for never. It is not known if it may
// have been fetched lately and was pushed out: what a full bucket has lost was not fetched
// after anything that it still has.
func (f *fetched) last(clientID, host, topic string, partition int32) (at time.Time, known bool) {
	table := f.table.Load()
	if table == nil {
		return time.Time{}, true
	}
	hash := f.place(f.who(clientID, host), topic, partition)
	bucket := &table[hash%fetchedBuckets]
	oldest := uint32(1<<32 - 1)
	for i := range bucket {
		entry := bucket[i].Load()
		second := uint32(entry) // 0 if there is none.
		if entry>>32 == hash>>32 && second != 0 {
			return f.time(second), true
		}
		oldest = min(oldest, second)
	}
	return time.Time{}, oldest == 0 || f.now().Sub(f.time(oldest)) >= fetchedLately
}

// time is what second makes an entry of.
func (f *fetched) time(second uint32) time.Time {
	return f.since.Add(time.Duration(second-1) * time.Second)
}

// ago is last as brokers tell it each other.
func (f *fetched) ago(clientID, host, topic string, partition int32) (millis int64) {
	at, known := f.last(clientID, host, topic, partition)
	switch {
	case !known:
		return protocol.FetchNotKnown
	case at.IsZero():
		return protocol.NeverFetched
	}
	return max(f.now().Sub(at).Milliseconds(), 0)
}

// Fetched returns when a client last fetched a partition that this broker leads, to the
// second; zero for never. Under very many clients it may not be known.
func (h *Handler) Fetched(clientID, host, topic string, partition int32) (at time.Time, known bool) {
	at, known = h.fetched.last(clientID, host, topic, partition)
	if !at.IsZero() {
		// By the clock of today: entries count seconds since the start, in which that may
		// have been set, or the machine have slept.
		now := h.fetched.now()
		at = now.Round(0).Add(-now.Sub(at))
	}
	return at, known
}
