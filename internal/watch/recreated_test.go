package watch

import (
	"testing"

	"muster/internal/metadata"
	"muster/internal/watch/lag"
)

func TestATopicOfTheSameNameIsToldByItsID(t *testing.T) {
	w := newWorld(t)
	w.topic("orders", self)
	w.logs[orders0] = Log{End: 100, LastStable: 100, Bytes: 1}
	w.groups = []Group{billing(map[Part]int64{orders0: 90}, orders0)}
	w.passes(3, nil)
	e := w.image.Edit()
	e.PutTopic(metadata.Topic{Name: "orders", ID: metadata.TopicID{9}, Partitions: []metadata.Partition{{Leader: self}}})
	w.image = e.Image()
	w.logs[orders0] = Log{End: 150, LastStable: 150, Bytes: 1}
	w.groups = []Group{billing(map[Part]int64{orders0: 10}, orders0)}
	w.passes(1, nil)
	if got := w.of("billing"); got.Lag != 140 || got.Verdicts[lag.Rewound] != 0 {
		t.Errorf("%+v", got)
	}
}
