// Package metadata is the image of the cluster: its brokers, its topics with
// their partitions, the settings of both, and those of groups; its users, what
// they may do, and how much of it.
//
// An Image never changes; a change makes a new one that shares what stayed the
// same. So an image can be read without a lock for as long as it is needed, and two
// brokers that applied the same changes hold equal images.
package metadata

import (
	"encoding/base64"
	"maps"
	"slices"
	"sort"
	"strings"

	"muster/internal/auth"
	"muster/internal/metadata/config"
)

// TopicID is a topic's id.
type TopicID [16]byte

// String returns the id as Kafka's tools print it.
func (id TopicID) String() string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// ParseTopicID reads what String wrote.
func ParseTopicID(s string) (id TopicID, err error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	copy(id[:], b)
	return id, err
}

// Endpoint is where a listener can be reached.
type Endpoint struct {
	Listener string
	Host     string
	Port     int32
}

// Broker is a member of the cluster.
type Broker struct {
	ID        int32
	Rack      string
	Endpoints []Endpoint
	// HTTP is where other brokers reach its HTTP API, as http://host:port; empty if
	// they do not, and of brokers of versions that did not tell.
	HTTP string
	// Incarnation is another one each time a broker starts.
	Incarnation string
}

// Endpoint returns the broker's address on a listener.
func (b *Broker) Endpoint(listener string) (Endpoint, bool) {
	i := slices.IndexFunc(b.Endpoints, func(e Endpoint) bool { return e.Listener == listener })
	if i < 0 {
		return Endpoint{}, false
	}
	return b.Endpoints[i], true
}

// Partition says who leads a partition.
type Partition struct {
	Leader      int32
	LeaderEpoch int32
}

// Topic is a topic with its partitions and settings.
type Topic struct {
	Name       string
	ID         TopicID
	Internal   bool
	Partitions []Partition
	Set        map[string]string // settings set on the topic
	Config     config.Topic      // all of them, typed
	// Preferred is the broker that each partition was given to, NoBroker for none. It
	// ends before partitions that no one spoke of.
	Preferred []int32
}

// Image is the state of the cluster at one moment.
type Image struct {
	ClusterID  string
	Controller int32
	Brokers    []Broker
	// Defaults are the settings that the broker was started with, Set those
	// that were altered since, Config both together.
	Defaults *config.Broker
	Set      map[string]string
	Config   *config.Broker
	// GroupSettings are those of groups that have their own, nil if none has.
	GroupSettings *GroupSettings
	// Users are those that can log in by a password, nil if there are none.
	Users *Users
	// Rules say who may do what, if Authorizes; never nil.
	Rules *auth.Index
	// Quotas are the limits of clients, nil if none has any.
	Quotas *Quotas
	// Secrets are what brokers of the cluster know each other by.
	Secrets Secrets

	topics     map[string]*Topic
	byID       map[TopicID]*Topic
	authorizes bool
}

// NoBroker is the id of no broker.
const NoBroker = -1

// NewImage returns an image without topics.
func NewImage(defaults *config.Broker, brokers ...Broker) *Image {
	i := &Image{
		Controller: NoBroker, Brokers: brokers,
		Defaults: defaults, Config: defaults, Set: map[string]string{},
		topics: map[string]*Topic{}, byID: map[TopicID]*Topic{},
	}
	if len(brokers) > 0 {
		i.Controller = brokers[0].ID
	}
	i.authorizes, i.Rules = authorization(defaults)
	return i
}

// Topic returns the topic of that name, nil if there is none.
func (i *Image) Topic(name string) *Topic { return i.topics[name] }

// Dense says whether a difference of offsets in a topic is a number of records.
func (i *Image) Dense(topic string) bool {
	t := i.Topic(topic)
	return t == nil || t.Config.Traits.Dense
}

// TopicByID returns the topic with that id, nil if there is none.
func (i *Image) TopicByID(id TopicID) *Topic { return i.byID[id] }

// Topics returns all topics in the order of their names.
func (i *Image) Topics() []*Topic {
	return slices.SortedFunc(maps.Values(i.topics), func(a, b *Topic) int { return strings.Compare(a.Name, b.Name) })
}

// TopicCount returns how many topics there are.
func (i *Image) TopicCount() int { return len(i.topics) }

// Broker returns the broker with that id, nil if there is none.
func (i *Image) Broker(id int32) *Broker {
	for n := range i.Brokers {
		if i.Brokers[n].ID == id {
			return &i.Brokers[n]
		}
	}
	return nil
}

// Edit makes the next image. Its methods may be called in any number; Image
// returns the result, after which the Edit must not be used.
type Edit struct {
	next    *Image
	changed map[string]struct{}
	// ownGroups says that the settings of groups are this edit's to change.
	ownGroups bool
	// ownUsers and ownQuotas say the same of those.
	ownUsers, ownQuotas bool
	// rules are changes of rules that the image does not have yet; nil if there are none.
	rules *auth.Edit
}

// Edit starts a change.
func (i *Image) Edit() *Edit {
	next := *i
	next.topics, next.byID = maps.Clone(i.topics), maps.Clone(i.byID)
	return &Edit{next: &next, changed: map[string]struct{}{}}
}

// Image returns the changed image.
func (e *Edit) Image() *Image {
	if e.rules != nil { // All at once: an index is made anew for each edit of it.
		e.next.Rules, e.rules = e.rules.Index(), nil
	}
	return e.next
}

// Changed returns the names of the topics that were put or removed.
func (e *Edit) Changed() []string { return slices.Sorted(maps.Keys(e.changed)) }

// PutTopic adds or replaces a topic. Its typed settings are computed.
func (e *Edit) PutTopic(t Topic) {
	if old := e.next.topics[t.Name]; old != nil {
		delete(e.next.byID, old.ID)
	}
	e.changed[t.Name] = struct{}{}
	t.Config = config.NewTopic(e.next.Config, t.Set)
	e.next.topics[t.Name] = &t
	e.next.byID[t.ID] = &t
}

// RemoveTopic removes a topic if it is there.
func (e *Edit) RemoveTopic(name string) {
	if old := e.next.topics[name]; old != nil {
		e.changed[name] = struct{}{}
		delete(e.next.topics, name)
		delete(e.next.byID, old.ID)
	}
}

// SetBrokerConfig replaces the settings altered at run time, and with them what
// topics fall back to.
func (e *Edit) SetBrokerConfig(set map[string]string) {
	e.next.Set = maps.Clone(set)
	e.next.Config = e.next.Defaults.With(set)
	for _, t := range e.next.topics {
		e.PutTopic(*t)
	}
}

// PutBroker adds or replaces a broker. The one with the lowest id is named as
// the controller: any broker can change the metadata, but clients want one name.
func (e *Edit) PutBroker(b Broker) {
	e.RemoveBroker(b.ID)
	e.next.Brokers = append(e.next.Brokers, b)
	sort.Slice(e.next.Brokers, func(i, j int) bool { return e.next.Brokers[i].ID < e.next.Brokers[j].ID })
	e.next.Controller = e.next.Brokers[0].ID
}

// RemoveBroker removes a broker if it is there.
func (e *Edit) RemoveBroker(id int32) {
	e.next.Brokers = slices.DeleteFunc(slices.Clone(e.next.Brokers), func(b Broker) bool { return b.ID == id })
	e.next.Controller = NoBroker
	if len(e.next.Brokers) > 0 {
		e.next.Controller = e.next.Brokers[0].ID
	}
}

// SetClusterID sets the cluster id.
func (e *Edit) SetClusterID(id string) { e.next.ClusterID = id }

// SetSecrets sets what brokers know each other by.
func (e *Edit) SetSecrets(s Secrets) { e.next.Secrets = s }

// SetLeaderEpoch sets the leader epoch of all partitions, which a broker with a
// store of its own raises when it restarts after a crash.
func (e *Edit) SetLeaderEpoch(epoch int32) {
	for _, t := range e.next.topics {
		c := *t
		c.Partitions = slices.Clone(t.Partitions)
		for i := range c.Partitions {
			c.Partitions[i].LeaderEpoch = epoch
		}
		e.PutTopic(c)
	}
}
