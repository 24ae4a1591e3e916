package journal

import "testing"

// The hashes are Java's String.hashCode; the partition is Kafka's.
func TestPartitionForIsJavasHashOfTheGroupID(t *testing.T) {
	for _, c := range []struct {
		id        string
		partition int32
	}{
		{"", 0},       // hash 0
		{"a", 47},     // 97
		{"Aa", 12},    // 2112, as
		{"BB", 12},    // this one
		{"hello", 22}, // 99162322
		{"connect-cluster", 13},
		{"console-consumer-12345", 6},
		{"my-group", 12}, // -1906497762: the sign is dropped
		{"группа", 8},    // over UTF-16 code units, not bytes
		{"日本", 47},
		{"😀", 49}, // two units, 0xD83D and 0xDE00
		{"group-😀-x", 2},
		{"\U0010FFFF", 32},
		// Integer.MIN_VALUE, which has no absolute value: Kafka takes 0.
		{"polygenelubricants", 0}, {"GydZG_", 0}, {"DESIGNING WORKHOUSES", 0},
	} {
		if got := PartitionFor(c.id, 50); got != c.partition {
			t.Errorf("PartitionFor(%q, 50) = %d, want %d", c.id, got, c.partition)
		}
	}
	if got := PartitionFor("hello", 7); got != 99162322%7 {
		t.Errorf("of 7 partitions: %d", got)
	}
}

func FuzzPartitionForIsInRange(f *testing.F) {
	f.Add("polygenelubricants", int32(50))
	f.Add("\xff\xfe", int32(1))
	f.Fuzz(func(t *testing.T, id string, partitions int32) {
		if partitions <= 0 {
			return
		}
		if got := PartitionFor(id, partitions); got < 0 || got >= partitions {
			t.Errorf("PartitionFor(%q, %d) = %d", id, partitions, got)
		}
	})
}
