package quota

import (
	"container/list"
	"time"
)

// Kind is what is counted.
type Kind int8

// Kinds of quotas.
const (
	Produced    Kind = iota // bytes of Produce requests
	Fetched                 // bytes of Fetch answers
	Mutations               // partitions that are created and deleted
	Connections             // connections that begin
	Requests                // percent of a second that requests are worked on
)

// Key says whose bucket it is. As in Kafka the entity whose quota decides says which
// of the names count: with a quota for users all clients of a user share a bucket,
// with one for users and clients each client of each user has its own.
type Key struct {
	Kind             Kind
	HasUser, HasName bool
	User             string
	Name             string // the client id, or of a connection the address
}

// Idle is for how long a bucket is kept that no one uses, as in Kafka.
const Idle = time.Hour

// Book keeps buckets, of which there are no more than some number and bytes. Clients
// can make up client ids without end: when there are too many, the one that was not
// used for longest goes.
type Book struct {
	most  int
	bytes int // at most

	buckets map[Key]*list.Element
	used    *list.List // of *page, the least recently used first
	size    int        // in bytes
}

type page struct {
	key    Key
	bucket *Bucket
}

// pageSize is about what a bucket takes besides the names.
const pageSize = 448

func (k Key) size() int { return pageSize + len(k.User) + len(k.Name) }

// NewBook returns a book for so many buckets, and so many bytes in all.
func NewBook(buckets, bytes int) *Book {
	return &Book{most: buckets, bytes: bytes, buckets: map[Key]*list.Element{}, used: list.New()}
}

// Bucket returns a bucket, which goes by a limit from now on. It is good until the
// next call.
func (b *Book) Bucket(k Key, l Limit, now time.Time) *Bucket {
	if e := b.buckets[k]; e != nil {
		b.used.MoveToBack(e)
		bucket := e.Value.(*page).bucket
		if now.Sub(bucket.at) < Idle {
			bucket.Alter(l, now)
			return bucket
		}
		b.forget(e)
	}
	b.tidy(now)
	p := &page{key: k, bucket: NewBucket(l, now)}
	b.buckets[k] = b.used.PushBack(p)
	b.size += k.size()
	for b.used.Len() > 1 && (b.used.Len() > b.most || b.size > b.bytes) {
		b.forget(b.used.Front())
	}
	return p.bucket
}

// tidied is how many idle buckets are forgotten whenever one is made: more than one,
// so that their number falls.
const tidied = 4

// tidy forgets buckets that were not used for long.
func (b *Book) tidy(now time.Time) {
	for range tidied {
		oldest := b.used.Front()
		if oldest == nil || now.Sub(oldest.Value.(*page).bucket.at) < Idle {
			return
		}
		b.forget(oldest)
	}
}

func (b *Book) forget(e *list.Element) {
	p := b.used.Remove(e).(*page)
	delete(b.buckets, p.key)
	b.size -= p.key.size()
}

// Len returns how many buckets there are, and Bytes about what they take.
func (b *Book) Len() int   { return b.used.Len() }
func (b *Book) Bytes() int { return b.size }
