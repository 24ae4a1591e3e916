package modern

import (
	"testing"
	"time"

	"muster/internal/metadata"
	"muster/internal/metadata/config"
)

func TestAnEpochIsNeverGivenOutTwiceAfterALoad(t *testing.T) {
	e := NewEpochs()
	if e.Epoch != 1 || e.TargetEpoch != 1 || e.Next(3) != 2 {
		t.Errorf("the first epochs are %+v", e)
	}
	e.SetEpoch(true, 9, 77)
	e.SetTarget(true, 8, 5)
	if e.MustRenew() || !e.IsBehind() {
		t.Error("a group that was not loaded must have another epoch, or needs no target")
	}
	e.FirstAfterLoad = true
	if !e.MustRenew() {
		t.Error("a target that was due when the group was loaded is made for the epoch that the log has")
	}
	if next := e.Next(3); next <= 10 || e.FirstAfterLoad || e.Next(3) != 10 {
		t.Errorf("the first epoch after a load is %d", next)
	}
	e.SetEpoch(false, 9, 77)
	e.SetTarget(false, 8, 5)
	if e != NewEpochs() {
		t.Errorf("after the tombstones it is %+v", e)
	}
}

func TestTargetsAreMadeAfterTheInterval(t *testing.T) {
	e, at := NewEpochs(), time.UnixMilli(1_700_000_000_000)
	if !e.MayTarget(at, time.Second) {
		t.Error("the first target is waited for")
	}
	e.SetTarget(true, 2, at.UnixMilli())
	for after, want := range map[time.Duration]bool{0: false, 999 * time.Millisecond: false, time.Second: true, -time.Millisecond: true} {
		if e.MayTarget(at.Add(after), time.Second) != want {
			t.Errorf("%s after the last target: %t", after, !want)
		}
	}
	if !e.MayTarget(at, 0) {
		t.Error("without an interval a target is waited for")
	}
}

func TestTopicsHaveAnotherHashWhenTheyChange(t *testing.T) {
	image := func(topics ...metadata.Topic) *metadata.Image {
		edit := metadata.NewImage(&config.Broker{}).Edit()
		for _, t := range topics {
			edit.PutTopic(t)
		}
		return edit.Image()
	}
	a := metadata.Topic{Name: "a", ID: metadata.TopicID{1}, Partitions: make([]metadata.Partition, 2)}
	grown, again := a, a
	grown.Partitions = make([]metadata.Partition, 3)
	again.ID = metadata.TopicID{2}
	names := func() []string { return []string{"b", "a", "a"} }
	first := FindTopics(image(a), names())
	if len(first.Found) != 1 || len(first.Absent) != 1 || first.Absent[0] != "b" || FindTopics(nil, names()).Hash() != 0 {
		t.Errorf("found are %+v", first)
	}
	for what, next := range map[string]*metadata.Image{"grown": image(grown), "recreated": image(again), "deleted": image(), "created": image(a, metadata.Topic{Name: "b"})} {
		now := FindTopics(next, names())
		if now.Hash() == first.Hash() {
			t.Errorf("%s: the hash is the same", what)
		}
		if c := first.Changes(now); len(c) != 1 {
			t.Errorf("%s: %+v", what, c)
		}
	}
	if same := FindTopics(image(a), names()); same.Hash() != first.Hash() || len(first.Changes(same)) > 0 {
		t.Error("nothing has changed, and something has")
	}
}
