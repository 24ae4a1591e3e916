package schema

import (
	"reflect"
	"testing"

	"muster/internal/metadata"
)

// The records of share groups (KIP-932), written by hand from Kafka's schema.
func TestShareGroupRecordsAreInKafkasFormat(t *testing.T) {
	topic := metadata.TopicID(unhex(t, "ab9b3b29b641458ea20eec4d06570616"))
	rack := "r1"
	for _, c := range []golden{
		{"a member", "000a 0001 'g' 0001 'm'", "0000 03 'r1' 02 'c' 03 '/h' 02 02 't' 00", &ShareMemberRecord{"g", "m", &ShareMember{&rack, "c", "/h", []string{"t"}}}},
		{"a member without a rack", "000a 0001 'g' 0001 'm'", "0000 00 02 'c' 01 01 00", &ShareMemberRecord{"g", "m", &ShareMember{ClientID: "c"}}},
		{"an epoch", "000b 0001 'g'", "0000 00000002 0000000000000007 00", &ShareEpochRecord{"g", &ShareEpoch{2, 7}}},
		{"a target's epoch", "000c 0001 'g'", "0000 00000002 01 00 08 0000000000000007", &ShareTargetEpochRecord{"g", &ShareTargetEpoch{2, 7}}},
		{"a target's epoch without a time", "000c 0001 'g'", "0000 00000002 00", &ShareTargetEpochRecord{"g", &ShareTargetEpoch{Epoch: 2}}},
		{"a target", "000d 0001 'g' 0001 'm'", "0000 02 ab9b3b29b641458ea20eec4d06570616 02 00000005 00 00",
			&ShareTargetRecord{"g", "m", &ShareTarget{[]TopicPartitions{{topic, []int32{5}}}}}},
		{"where a member is", "000e 0001 'g' 0001 'm'", "0000 00000003 00000002 00 02 ab9b3b29b641458ea20eec4d06570616 02 00000005 00 00",
			&ShareCurrentRecord{"g", "m", &ShareCurrent{Epoch: 3, Previous: 2, Assigned: []TopicPartitions{{topic, []int32{5}}}}}},
		{"topics", "000f 0001 'g'", "0000 02 ab9b3b29b641458ea20eec4d06570616 02 't' 02 00000001 00 02 ab9b3b29b641458ea20eec4d06570616 02 't' 02 00000000 00 02 ab9b3b29b641458ea20eec4d06570616 02 't' 00 00",
			&ShareTopicsRecord{"g", &ShareTopics{[]ShareTopic{{topic, "t", []int32{1}}}, []ShareTopic{{topic, "t", []int32{0}}}, []ShareDeletedTopic{{topic, "t"}}}}},
		{"a tombstone", "000f 0001 'g'", "", &ShareTopicsRecord{Group: "g"}},
	} {
		got, err := Decode(unhex(t, c.key), valueOf(t, c.value))
		if err != nil || !reflect.DeepEqual(got, c.record) {
			t.Errorf("%s is read as %+v, %v", c.what, got, err)
		}
		key, value := c.record.Encode()
		if string(key) != string(unhex(t, c.key)) || string(value) != string(unhex(t, c.value)) {
			t.Errorf("%s is written as %x, %x", c.what, key, value)
		}
		if n := c.record.Size(); n < len(key)+len(value) {
			t.Errorf("%s has %d bytes, and says %d", c.what, len(key)+len(value), n)
		}
	}
}

// valueOf is nil for a tombstone.
func valueOf(t *testing.T, text string) []byte {
	if text == "" {
		return nil
	}
	return unhex(t, text)
}
