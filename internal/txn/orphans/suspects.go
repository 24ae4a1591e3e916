package orphans

import (
	"slices"

	"muster/internal/metadata"
)

// suspects are the transactions that no coordinator knew when they were asked.
type suspects struct {
	found map[suspect]bool
	by    []metadata.Partition // the coordinators
}

type suspect struct {
	ongoing
	first int64
}

// confirm returns those of the orphans that were found the time before as well, by
// the same coordinators, and remembers all for the next time.
func (s *suspects) confirm(found []orphan, by []metadata.Partition) (again []orphan) {
	before := *s
	*s = suspects{found: map[suspect]bool{}, by: by}
	for _, o := range found {
		key := suspect{ongoing{o.ProducerID, o.TopicPartition}, o.FirstOffset}
		s.found[key] = true
		if before.found[key] && slices.Equal(before.by, by) {
			again = append(again, o)
		}
	}
	return again
}
