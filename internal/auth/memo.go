package auth

import "strings"

const (
	// memoAnswers is how many resources a memo remembers, and memoBytes how long their
	// names are in all: every connection has a memo.
	memoAnswers = 256
	memoBytes   = 8 << 10
	// memoName is the longest name that is remembered. Names of topics are shorter.
	memoName = 256
	// memoMisses is how many resources a full memo is asked for in vain before it begins
	// anew, so that what a connection was about once does not stay for ever. If it began
	// anew at once, someone with more resources than it remembers would only fill it.
	memoMisses = 1024
)

// Memo remembers what an index said to one connection, so that most questions are
// answered without a search. It is asked with the index, the principal, its groups and the host each
// time, and forgets everything when one of them is another than before: rules may have
// changed, and a connection may have logged in again. The zero Memo is ready. It must
// not be used by two goroutines at once.
type Memo struct {
	version *version // not the index: no one else may need that one any more
	who     Principal
	groups  Groups
	host    string
	last    *answer // the one given last; nil if none is remembered
	answers map[thing]*answer
	bytes   int // of the names in answers
	misses  int // since it is full
}

// version tells one index from another, for as long as someone remembers it.
type version struct{ _ byte }

// thing is a resource that rules are about.
type thing struct {
	kind ResourceType
	name string
}

// answer is what someone may do with a resource.
type answer struct {
	thing
	may Operations
}

// Rights returns what x.Rights returns.
func (m *Memo) Rights(x *Index, q Request) Operations {
	if m.version != x.version || m.who != q.Principal || m.host != q.Host || m.groups != q.Groups {
		m.forget()
		m.version, m.who, m.groups, m.host = x.version, q.Principal, q.Groups, q.Host
	}
	t, name := q.Type, q.Name
	if m.last != nil && m.last.kind == t && m.last.name == name {
		return m.last.may
	}
	if known := m.answers[thing{t, name}]; known != nil {
		m.last = known
		return known.may
	}
	may := x.Rights(q)
	m.learn(t, name, may)
	return may
}

// learn remembers an answer, if there is room for it.
func (m *Memo) learn(t ResourceType, name string, may Operations) {
	if len(name) > memoName {
		return
	}
	if len(m.answers) >= memoAnswers || m.bytes+len(name) > memoBytes {
		if m.misses++; m.misses < memoMisses {
			return
		}
		m.forget()
	}
	if m.answers == nil {
		m.answers = map[thing]*answer{}
	}
	r := thing{t, strings.Clone(name)} // It may be part of a request.
	m.last = &answer{r, may}
	m.answers[r] = m.last
	m.bytes += len(name)
}

// forget makes the memo one that knows nothing.
func (m *Memo) forget() {
	clear(m.answers)
	m.last, m.bytes, m.misses = nil, 0, 0
}
