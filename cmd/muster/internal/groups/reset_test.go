package groups

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"muster/internal/assert"
	"muster/internal/watch/groupview"
)

// orders is a source that knows the topic orders alone, which has two partitions.
type orders struct{}

func (orders) Describe(context.Context, []string) (map[string]groupview.Description, error) {
	return nil, nil
}

func (orders) Logs(context.Context, []string) (map[string]groupview.Log, error) {
	return map[string]groupview.Log{"orders": {Partitions: 2}}, nil
}

func (orders) FirstTimes(context.Context, map[groupview.TopicPartition]int64) (map[groupview.TopicPartition]time.Time, error) {
	return nil, nil
}

func TestAResetIsOfPartitionsThatThereAre(t *testing.T) {
	for flag, want := range map[string]string{
		"orders": "", "orders:0,1": "", "orders:1": "",
		"orders:0,2": "topic orders has no partition 2; it has 2 partitions", "users": "users", "orders:": "--topic takes", "orders:-1": "--topic takes", ":1": "--topic takes",
	} {
		set := kadm.TopicsSet{}
		scopes, err := parseScopes([]string{flag})
		if err == nil {
			err = addScopes(t.Context(), groupview.NewLoader(orders{}), scopes, set)
		}
		assert.True(t, (err == nil) == (want == "") && (err == nil || strings.Contains(err.Error(), want)), "%s: %v", flag, err)
		if n := len(set["orders"]); err == nil && n != 2 && flag != "orders:1" {
			t.Errorf("%s: %d partitions", flag, n)
		}
	}
	if _, err := parseScopes([]string{"orders:0", "orders:1"}); err == nil {
		t.Error("a topic is named twice")
	}
}

// Also what nothing is committed of becomes another offset.
func TestAResetChangesWhatIsNotThereYet(t *testing.T) {
	five, six := int64(5), int64(6)
	for _, c := range []struct {
		current, to *int64
		want        bool
	}{{&five, &six, true}, {&five, &five, false}, {nil, &five, true}, {&five, nil, false}, {nil, nil, false}} {
		r := resetPartition{Current: c.current, New: c.to}
		if r.changes() != c.want {
			t.Errorf("%+v changes: %t", r, !c.want)
		}
	}
}
