package metadata

import (
	"testing"

	"muster/internal/assert"
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
			assert.False(t, !(len(want) == 3) && !image.MayLead(b.ID), "%q: broker %d may not lead", set, b.ID)
		}
		assert.True(t, len(got) == len(want) && got[0] == want[0], "%q: %v may lead, want %v", set, got, want)
		assert.False(t, image.MayLead(7), "%q: a broker that is not there may lead", set)
	}
}
