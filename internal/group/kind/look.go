package kind

import "muster/internal/metadata"

// Look is a group as someone sees it who watches all groups again and again: for less
// than what DescribeGroups and OffsetFetch cost, and with the times of commits, which
// these do not tell. Its lists are used again by the next LookAt.
type Look struct {
	Name         string
	Type         string
	State        string
	ProtocolType string
	Protocol     string // Of a classic group.
	Members      []MemberLook
	Offsets      []OffsetLook // In order of topic and partition.
}

// MemberLook is a member.
type MemberLook struct {
	ID, ClientID, Host string
	// Of a member that uses the classic protocol in a classic group that is Stable: what
	// it subscribes to and what it has. No one changes these bytes.
	Subscription, Assignment []byte
	// Of a member of a consumer group.
	Topics []string // That it subscribes to by name. No one changes them.
	Regex  []string // The topics that its regular expression matches. No one changes them.
	Parts  []PartLook
}

// PartLook is a partition that a member of a consumer group has.
type PartLook struct {
	Topic     metadata.TopicID
	Partition int32
}

// OffsetLook is a committed offset.
type OffsetLook struct {
	Topic     string
	Partition int32
	Offset    int64
	At        int64 // When it was committed, in milliseconds since 1970.
}

// Look adds the offsets of a topic. Most groups have committed all its partitions, so to
// count them up costs less than to list and sort them.
func (l *Look) Look(topic string, t *TopicOffsets) {
	add := func(p int32, k Kept) {
		l.Offsets = append(l.Offsets, OffsetLook{Topic: topic, Partition: p, Offset: k.At, At: k.commit})
	}
	begun := len(l.Offsets)
	for p := range int32(sparse * len(t.Parts)) {
		if k, ok := t.Parts[p]; ok {
			add(p, k)
		}
		if len(l.Offsets)-begun == len(t.Parts) {
			return
		}
	}
	l.Offsets = l.Offsets[:begun]
	for _, p := range t.Partitions() {
		add(p, t.Parts[p])
	}
}

// Another adds an empty member, in the memory of one that was there before.
func (l *Look) Another() *MemberLook {
	n := len(l.Members)
	if n == cap(l.Members) {
		l.Members = append(l.Members, MemberLook{})
	} else {
		l.Members = l.Members[:n+1]
	}
	m := &l.Members[n]
	*m = MemberLook{Parts: m.Parts[:0]}
	return m
}

// sparse is up to how many times as many numbers as there are partitions are tried.
const sparse = 4
