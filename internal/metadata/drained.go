package metadata

import (
	"slices"
	"strconv"

	"muster/internal/metadata/config"
)

// DrainedSetting lists the brokers that lead no partitions while others can. It is a
// setting of all brokers that is altered while they run.
const DrainedSetting = "muster.brokers.drained"

// Drained says whether a broker is to lead nothing.
func (i *Image) Drained(id int32) bool {
	set := i.Set[DrainedSetting]
	return set != "" && slices.Contains(config.SplitList(set), strconv.Itoa(int(id)))
}

// MayLead says whether a broker is there and not drained.
func (i *Image) MayLead(id int32) bool { return i.Broker(id) != nil && !i.Drained(id) }

// MayLeadAll returns the brokers that are not drained; all if every one is.
func (i *Image) MayLeadAll() []Broker {
	left := slices.DeleteFunc(slices.Clone(i.Brokers), func(b Broker) bool { return i.Drained(b.ID) })
	if len(left) == 0 {
		return i.Brokers
	}
	return left
}
