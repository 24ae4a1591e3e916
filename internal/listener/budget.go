package listener

import (
	"sync"
	"time"
)

const (
	// readingShare is the part of a budget, in quarters, that frames may take which are
	// still being read; the rest is for requests that are handled.
	readingShare = 3
	// ownerShare is the part, in quarters, that such frames of one owner may take.
	ownerShare = 2
	// framePatience is how long a frame may take to arrive even while others wait for its
	// memory.
	framePatience = time.Second
)

// budget is an amount of memory that frames share. A request that finds it used up waits,
// and meanwhile those give way that have been half sent for longest, first of the owner that
// has most.
type budget struct {
	mu      sync.Mutex
	more    *sync.Cond
	free    int
	total   int
	reading []*arrival     // frames that are being read
	owners  map[string]int // their bytes by owner
	arrives int            // all of their bytes
	cutting int            // bytes of frames that were told to give way, and have not yet
	waiting int
	timer   *time.Timer // wakes those who wait, nil if no one does
}

// arrival is the frame that a connection is reading.
type arrival struct {
	owner string // who sends it: a user, or an address before a login
	// giveWay has the connection read no further. It may be called at any time.
	giveWay func()

	since time.Time
	bytes int
	at    int  // in reading
	cut   bool // it gives way
}

func newBudget(total int) *budget {
	b := &budget{free: total, total: total, owners: map[string]int{}}
	b.more = sync.NewCond(&b.mu)
	return b
}

// take takes n bytes for a frame that is being read, as soon as they are there; false says
// that the frame is to give way to others.
func (b *budget) take(a *arrival, n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for !a.cut && !b.room(a, n) {
		b.makeRoom(a, n)
		b.wait()
	}
	if a.cut {
		return false
	}
	b.free -= n
	if a.bytes == 0 {
		a.since, a.at = time.Now(), len(b.reading)
		b.reading = append(b.reading, a)
	}
	a.bytes += n
	b.arrives += n
	b.owners[a.owner] += n
	return true
}

// room says whether there are n bytes for a frame. One that is alone may have all that there
// is, and more.
func (b *budget) room(a *arrival, n int) bool {
	return b.free >= n && b.within(a, n) || b.total-b.free == a.bytes
}

// within says whether a frame may take n bytes of what there is for those that are being read.
func (b *budget) within(a *arrival, n int) bool {
	all, owner := b.arrives-a.bytes, b.owners[a.owner]-a.bytes
	return (all == 0 || all+a.bytes+n <= b.total*readingShare/4) && (owner == 0 || owner+a.bytes+n <= b.total*ownerShare/4)
}

// makeRoom has a frame give way to another, unless enough do already.
func (b *budget) makeRoom(a *arrival, n int) {
	if b.cutting >= n {
		return
	}
	own := b.owners[a.owner] > a.bytes && b.owners[a.owner]+n > b.total*ownerShare/4 // No one else is in its way.
	late := time.Now().Add(-framePatience)
	var slow *arrival
	for _, o := range b.reading {
		if o.cut || o.since.After(late) || own && o.owner != a.owner {
			continue
		}
		if slow == nil || b.owners[o.owner] > b.owners[slow.owner] || b.owners[o.owner] == b.owners[slow.owner] && o.since.Before(slow.since) {
			slow = o
		}
	}
	if slow != nil {
		slow.cut = true
		b.cutting += slow.bytes
		b.more.Broadcast() // It may wait itself.
		slow.giveWay()
	}
}

// wait waits until something has changed, or frames have become old enough to give way.
func (b *budget) wait() {
	b.waiting++
	if b.timer == nil {
		b.timer = time.AfterFunc(framePatience/4, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.timer = nil
			b.more.Broadcast()
		})
	}
	b.more.Wait()
	b.waiting--
}

// arrived says that a frame is no longer being read. It keeps what it has.
func (b *budget) arrived(a *arrival) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.cut {
		b.cutting -= a.bytes
	}
	b.arrives -= a.bytes
	if b.owners[a.owner] -= a.bytes; b.owners[a.owner] == 0 {
		delete(b.owners, a.owner)
	}
	last := len(b.reading) - 1
	b.reading[a.at] = b.reading[last]
	b.reading[a.at].at = a.at
	b.reading[last] = nil
	b.reading = b.reading[:last]
	a.bytes = 0
	if b.waiting > 0 {
		b.more.Broadcast()
	}
}

// takeMore is for a request that has some of the budget already. Waiting would let
// two of them wait for each other, so it fails instead.
func (b *budget) takeMore(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.free < n {
		return false
	}
	b.free -= n
	return true
}

func (b *budget) give(n int) {
	if n <= 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += n
	b.more.Broadcast()
}
