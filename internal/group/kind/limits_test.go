package kind

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/machine"
)

// weighed is a group that holds so many bytes.
type weighed struct {
	Group
	bytes int64
}

func (w weighed) Weight() int64 { return w.bytes }

func TestMembersMayHoldSoMuch(t *testing.T) {
	s := NewShard(DefaultConfig())
	s.Cfg.MaxBytes = 40 << 20
	s.Groups["full"], s.Groups["over"], s.Groups["g"] = weighed{bytes: MaxGroupBytes - 100}, weighed{bytes: MaxGroupBytes + 100}, weighed{}
	s.WeighAll()
	var x Step
	x.Begin(&s, &machine.Input{Others: s.Cfg.MaxBytes - s.TotalWeight - 1000})
	for _, c := range []struct {
		group         string
		bytes, before int
		want          *kerr.Error
	}{
		{"g", 1000, 0, nil},
		{"g", 1001, 0, kerr.CoordinatorNotAvailable},
		{"g", 1001, 1001, nil},
		{"full", 100, 0, nil},
		{"full", 101, 0, kerr.GroupMaxSizeReached},
		{"none", MaxMemberBytes + 1, MaxMemberBytes + 1, kerr.UnknownServerError},
	} {
		if err := x.Room(c.group, c.bytes, c.before); err != c.want {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for _, c := range []struct {
		group string
		more  int64
		want  bool
	}{{"g", 1000, true}, {"g", 1001, false}, {"full", 100, true}, {"full", 101, false}, {"over", 0, true}, {"over", 1, false}} {
		if got := x.HasRoom(c.group, c.more); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}
