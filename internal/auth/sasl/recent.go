package sasl

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync"
)

// recent remembers passwords that were right, by a mark that only the holder of
// the secret can make. It keeps two generations: when the young one is full, the
// old one is forgotten, so it never holds more than twice its size, and who logs
// in often stays.
type recent struct {
	secret []byte
	size   int

	mu         sync.Mutex
	young, old map[mark]struct{}
}

type mark [sha256.Size]byte

func newRecent(secret []byte, size int) *recent {
	return &recent{secret: slices.Clone(secret), size: size, young: make(map[mark]struct{})}
}

// mark binds a password to the name and to the whole credential it was checked
// against. Each part carries its length, so that no two logins share a mark.
func (r *recent) mark(c Credential, name, password string) mark {
	m := hmac.New(sha256.New, r.secret)
	for _, part := range [][]byte{{byte(c.Hash)}, c.Salt, c.StoredKey, c.ServerKey, []byte(name), []byte(password)} {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		m.Write(length[:])
		m.Write(part)
	}
	return mark(m.Sum(nil))
}

func (r *recent) has(m mark) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.young[m]; ok {
		return true
	}
	if _, ok := r.old[m]; !ok {
		return false
	}
	r.put(m)
	return true
}

func (r *recent) add(m mark) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.put(m)
}

func (r *recent) put(m mark) {
	if r.size <= 0 {
		return
	}
	if len(r.young) >= r.size {
		r.young, r.old = make(map[mark]struct{}), r.young
	}
	r.young[m] = struct{}{}
}
