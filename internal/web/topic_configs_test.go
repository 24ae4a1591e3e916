package web

import (
	"net/http"
	"slices"
	"testing"

	"muster/internal/assert"
)

func TestATopicTellsItsSettingsWithTheirDefaults(t *testing.T) {
	f := newFake(t)
	s := serve(t, f)
	for topic, want := range map[string]TopicConfig{
		"orders": {Value: "1000", Default: "604800000", Set: true}, "payments": {Value: "604800000", Default: "604800000"},
	} {
		all := read[TopicConfigs](s, "/topics/"+topic+"/configs").Configs
		i := slices.IndexFunc(all, func(c TopicConfig) bool { return c.Name == "retention.ms" })
		if i < 0 || all[i].Value != want.Value || all[i].Default != want.Default || all[i].Set != want.Set || all[i].Doc == "" {
			t.Errorf("settings of %s: %+v", topic, all)
		}
		assert.False(t, slices.ContainsFunc(all, func(c TopicConfig) bool { return c.Name == "preallocate" }), "a setting that means nothing here is told")
	}
	s.fails(Prefix+"/topics/nothing/configs", http.StatusNotFound)
}
