package metadata

import (
	"testing"

	"muster/internal/metadata/config"
)

func TestDrainedBrokersLeadOnlyIfNoOtherCan(t *testing.T) {
	for set, want := range map[string][]int32{"": {1, 2, 12}, "2": {1, 12}, "1, 2": {12}, "1,2,12": {1, 2, 12}, "7": {1, 2, 12}} {
		edit := NewImage(&config.Broker{}, Broker{ID: 1}, Broker{ID: 2}, Broker{ID: 12}).Edit()
		edit.SetBrokerConfig(map[string]string{DrainedSetting: set})
		image := edit.Image()
		var got []int32
		for _, b := range image.MayLeadAll() {
			got = append(got, b.ID)
			if all := len(want) == 3; !all && !image.MayLead(b.ID) {
				t.Errorf("%q: broker %d may not lead", set, b.ID)
			}
		}
		if len(got) != len(want) || got[0] != want[0] {
			t.Errorf("%q: %v may lead, want %v", set, got, want)
		}
		if image.MayLead(7) {
			t.Errorf("%q: a broker that is not there may lead", set)
		}
	}
}
