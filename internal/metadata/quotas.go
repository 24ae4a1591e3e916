package metadata

import (
	"cmp"
	"maps"
	"slices"
	"sort"
)

// The keys of quotas: those of users and clients, and the one of addresses.
const (
	ProducerByteRate       = "producer_byte_rate"
	ConsumerByteRate       = "consumer_byte_rate"
	RequestPercentage      = "request_percentage"
	ControllerMutationRate = "controller_mutation_rate"
	ConnectionCreationRate = "connection_creation_rate"
)

// QuotaName is one part of whom a quota is for.
type QuotaName struct {
	Named bool
	Name  string // empty for the default of all that have no quota by their own name
}

// Some returns the part that names someone.
func Some(name string) QuotaName { return QuotaName{Named: true, Name: name} }

// Default returns the part that stands for all others.
func Default() QuotaName { return QuotaName{Named: true} }

// QuotaEntity is whom a quota is for: a user, a client id, both together, or an address.
type QuotaEntity struct{ User, ClientID, IP QuotaName }

func (e QuotaEntity) compare(f QuotaEntity) int {
	return cmp.Or(e.User.compare(f.User), e.ClientID.compare(f.ClientID), e.IP.compare(f.IP))
}

// compare puts parts that are not named first, then the default.
func (n QuotaName) compare(m QuotaName) int {
	switch {
	case n.Named == m.Named:
		return cmp.Compare(n.Name, m.Name)
	case m.Named:
		return -1
	}
	return 1
}

// size is what the entity adds to Size besides its quotas.
func (e QuotaEntity) size() int { return len(e.User.Name) + len(e.ClientID.Name) + len(e.IP.Name) }

// QuotaChange changes quotas of an entity.
type QuotaChange struct {
	Entity QuotaEntity
	Set    map[string]float64
	Remove []string
}

// Quotas has the limits of clients. It never changes. Nil has none.
type Quotas struct {
	of   map[QuotaEntity]map[string]float64
	size int
}

// Of returns the quotas of an entity by their keys, which must not be changed.
func (q *Quotas) Of(e QuotaEntity) map[string]float64 {
	if q == nil {
		return nil
	}
	return q.of[e]
}

// Entities returns all that have quotas: by user, client id and address, each time those
// first that do not name one, then the default, then by name.
func (q *Quotas) Entities() []QuotaEntity {
	if q == nil {
		return nil
	}
	out := slices.Collect(maps.Keys(q.of))
	sort.Slice(out, func(i, j int) bool { return out[i].compare(out[j]) < 0 })
	return out
}

// Len returns how many entities have quotas.
func (q *Quotas) Len() int {
	if q == nil {
		return 0
	}
	return len(q.of)
}

// Size returns how many bytes the names and quotas take.
func (q *Quotas) Size() int {
	if q == nil {
		return 0
	}
	return q.size
}

// Effective returns the limit that counts for a user's client, and whose it is: the
// first in Kafka's order that has the key.
func (q *Quotas) Effective(key, user, client string) (value float64, entity QuotaEntity, ok bool) {
	if q == nil {
		return 0, QuotaEntity{}, false
	}
	none := QuotaName{}
	for _, u := range [...]QuotaName{Some(user), Default(), none} {
		for _, c := range [...]QuotaName{Some(client), Default(), none} {
			entity = QuotaEntity{User: u, ClientID: c}
			if value, ok = q.of[entity][key]; ok {
				return value, entity, true
			}
		}
	}
	return 0, QuotaEntity{}, false
}

// EffectiveIP returns how many connections an address may make in a second.
func (q *Quotas) EffectiveIP(ip string) (float64, bool) {
	if q == nil {
		return 0, false
	}
	for _, n := range [...]QuotaName{Some(ip), Default()} {
		if value, ok := q.of[QuotaEntity{IP: n}][ConnectionCreationRate]; ok {
			return value, true
		}
	}
	return 0, false
}

// With returns how many entities would have quotas, and what they would take, if one of
// them had these.
func (q *Quotas) With(e QuotaEntity, set map[string]float64) (entities, bytes int) {
	was := q.Of(e)
	entities, bytes = q.Len(), q.Size()+sizeOfQuotas(e, set)-sizeOfQuotas(e, was)
	if len(was) > 0 {
		entities--
	}
	if len(set) > 0 {
		entities++
	}
	return entities, bytes
}

// sizeOfQuotas is what an entity adds to Size.
func sizeOfQuotas(e QuotaEntity, set map[string]float64) int {
	if len(set) == 0 {
		return 0
	}
	size := e.size()
	for key := range set {
		size += len(key) + 8
	}
	return size
}

// SetQuotas replaces the quotas of an entity. Without any it is forgotten.
func (e *Edit) SetQuotas(entity QuotaEntity, set map[string]float64) {
	old := e.next.Quotas
	if len(set) == 0 && len(old.Of(entity)) == 0 {
		return
	}
	_, size := old.With(entity, set)
	if !e.ownQuotas { // The image before has the same ones until now.
		next := &Quotas{of: map[QuotaEntity]map[string]float64{}}
		if old != nil {
			next.of = maps.Clone(old.of)
		}
		e.next.Quotas, e.ownQuotas = next, true
	}
	q := e.next.Quotas
	q.size = size
	if len(set) > 0 {
		q.of[entity] = maps.Clone(set)
	} else {
		delete(q.of, entity)
	}
	if len(q.of) == 0 {
		e.next.Quotas, e.ownQuotas = nil, false
	}
}
