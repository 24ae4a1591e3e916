package group

// Encode implements machine.Record.
func (r *ConsumerEpochRecord) Encode() (key, value []byte) {
	key = consumerKey(consumerEpochKeyVersion, r.Group)
	if r.Value == nil {
		return key, nil
	}
	value = appendInt32(consumerValue(2+4+taggedInt64Size), r.Value.Epoch)
	return key, appendTaggedInt64(value, r.Value.Hash)
}

// Size implements machine.Record.
func (r *ConsumerEpochRecord) Size() int { return consumerKeySize(r.Group) + 4 + taggedInt64Size }

// Encode implements machine.Record. A record that is there says that there are no
// topics.
func (r *ConsumerTopicsRecord) Encode() (key, value []byte) {
	key = consumerKey(consumerTopicsKeyVersion, r.Group)
	if !r.Live {
		return key, nil
	}
	return key, append(appendCount(consumerValue(4), 0), 0)
}

// Size implements machine.Record.
func (r *ConsumerTopicsRecord) Size() int { return consumerKeySize(r.Group) + 2 }

// Encode implements machine.Record.
func (r *ConsumerMemberRecord) Encode() (key, value []byte) {
	key = consumerKey(consumerMemberKeyVersion, r.Group, r.Member)
	v := r.Value
	if v == nil {
		return key, nil
	}
	b := consumerValue(r.Size())
	b = appendNullable(appendNullable(b, v.Instance), v.Rack)
	b = appendText(appendText(b, v.ClientID), v.Host)
	b = appendNullable(appendTexts(b, v.Topics), v.Regex)
	b = appendNullable(appendInt32(b, v.RebalanceTimeoutMillis), v.Assignor)
	return key, v.Classic.appendTagged(b)
}

// appendTagged appends the tagged fields of a member. That a field is left out
// means, by the rules of Kafka's encoding, that it has its default, and that is
// not null here, though the schema tries to say so: it is a classic member without
// protocols. So null is written, as a structure's first byte.
func (c *ClassicMember) appendTagged(b []byte) []byte {
	const present = 1
	switch {
	case c == nil:
		return append(b, 1, 0, 1, 0)
	case c.SessionTimeoutMillis == 0 && len(c.Protocols) == 0:
		return append(b, 0)
	}
	field := appendCount(appendInt32(append(make([]byte, 0, c.size()), present), c.SessionTimeoutMillis), len(c.Protocols))
	for i := range c.Protocols {
		p := &c.Protocols[i]
		field = appendCount(appendText(field, p.Name), len(p.Metadata))
		field = append(append(field, p.Metadata...), 0)
	}
	field = append(field, 0)
	return append(appendSize(append(b, 1, 0), len(field)), field...)
}

func (c *ClassicMember) size() int {
	if c == nil {
		return 4
	}
	n := 2 + 5 + 1 + 4 + countOverhead + 1
	for i := range c.Protocols {
		n += textSize(c.Protocols[i].Name) + countOverhead + len(c.Protocols[i].Metadata) + 1
	}
	return n
}

// Size implements machine.Record.
func (r *ConsumerMemberRecord) Size() int {
	n := consumerKeySize(r.Group, r.Member)
	if v := r.Value; v != nil {
		n += nullableSize(v.Instance) + nullableSize(v.Rack) + textSize(v.ClientID) + textSize(v.Host) +
			textsSize(v.Topics) + nullableSize(v.Regex) + 4 + nullableSize(v.Assignor) + v.Classic.size()
	}
	return n
}

// Encode implements machine.Record.
func (r *ConsumerTargetEpochRecord) Encode() (key, value []byte) {
	key = consumerKey(consumerTargetEpochKeyVersion, r.Group)
	if r.Value == nil {
		return key, nil
	}
	value = appendInt32(consumerValue(2+4+taggedInt64Size), r.Value.Epoch)
	return key, appendTaggedInt64(value, r.Value.Timestamp)
}

// Size implements machine.Record.
func (r *ConsumerTargetEpochRecord) Size() int { return consumerKeySize(r.Group) + 4 + taggedInt64Size }

// Encode implements machine.Record.
func (r *ConsumerTargetRecord) Encode() (key, value []byte) {
	key = consumerKey(consumerTargetKeyVersion, r.Group, r.Member)
	if r.Value == nil {
		return key, nil
	}
	b := appendCount(consumerValue(r.Size()), len(r.Value.Assigned))
	for i := range r.Value.Assigned {
		t := &r.Value.Assigned[i]
		b = append(appendInt32s(append(b, t.Topic[:]...), t.Partitions), 0)
	}
	return key, append(b, 0)
}

// Size implements machine.Record.
func (r *ConsumerTargetRecord) Size() int {
	n := consumerKeySize(r.Group, r.Member) + countOverhead + 1
	if r.Value != nil {
		for i := range r.Value.Assigned {
			n += 16 + countOverhead + 4*len(r.Value.Assigned[i].Partitions) + 1
		}
	}
	return n
}

// Encode implements machine.Record.
func (r *ConsumerCurrentRecord) Encode() (key, value []byte) {
	key = consumerKey(consumerCurrentKeyVersion, r.Group, r.Member)
	v := r.Value
	if v == nil {
		return key, nil
	}
	b := appendInt32(appendInt32(consumerValue(r.Size()), v.Epoch), v.Previous)
	b = appendOwned(append(b, byte(v.State)), v.Assigned)
	return key, append(appendOwned(b, v.Pending), 0)
}

func appendOwned(b []byte, list []OwnedPartitions) []byte {
	b = appendCount(b, len(list))
	for i := range list {
		t := &list[i]
		b = appendInt32s(append(b, t.Topic[:]...), t.Partitions)
		if len(t.Epochs) == 0 || len(t.Epochs) != len(t.Partitions) {
			b = append(b, 0)
			continue
		}
		b = append(b, 1, 0)
		b = appendSize(b, uvarintSize(uint64(len(t.Epochs))+1)+4*len(t.Epochs))
		b = appendInt32s(b, t.Epochs)
	}
	return b
}

// Size implements machine.Record.
func (r *ConsumerCurrentRecord) Size() int {
	n := consumerKeySize(r.Group, r.Member)
	if v := r.Value; v != nil {
		n += 4 + 4 + 1 + ownedSize(v.Assigned) + ownedSize(v.Pending) + 1
	}
	return n
}

func ownedSize(list []OwnedPartitions) int {
	n := countOverhead
	for i := range list {
		n += 16 + countOverhead + 4*len(list[i].Partitions) + 2 + 2*countOverhead + 4*len(list[i].Epochs)
	}
	return n
}

// Encode implements machine.Record.
func (r *ConsumerRegexRecord) Encode() (key, value []byte) {
	key = consumerKey(consumerRegexKeyVersion, r.Group, r.Regex)
	if r.Value == nil {
		return key, nil
	}
	b := appendTexts(consumerValue(r.Size()), r.Value.Topics)
	return key, append(appendInt64(appendInt64(b, r.Value.Version), r.Value.Timestamp), 0)
}

// Size implements machine.Record.
func (r *ConsumerRegexRecord) Size() int {
	n := consumerKeySize(r.Group, r.Regex)
	if r.Value != nil {
		n += textsSize(r.Value.Topics) + 8 + 8 + 1
	}
	return n
}
