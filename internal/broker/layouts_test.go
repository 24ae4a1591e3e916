package broker

import (
	"slices"
	"testing"

	"muster/internal/metadata/config"
	"muster/internal/store/redis"
)

// What settings name, the engine has, and nothing else.
func TestEveryLayoutOfTheSettingsIsOneOfTheEngine(t *testing.T) {
	names := slices.Sorted(slices.Values(config.RedisLayouts()))
	if has := slices.Sorted(slices.Values(redis.Layouts())); !slices.Equal(names, has) {
		t.Errorf("settings name %v, the engine has %v", names, has)
	}
}
