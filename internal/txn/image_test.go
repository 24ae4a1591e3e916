package txn

import (
	"strconv"
	"strings"

	"muster/internal/metadata"
	"muster/internal/metadata/config"
)

// imageOf returns metadata with topics that are written t=1,2: the leaders of its
// partitions, -1 for none. On Redis, s is of the layout stream and the others are
// logs.
func imageOf(topics ...string) *metadata.Image {
	defaults, err := config.NewBroker(map[string]string{"muster.store": "redis"})
	if err != nil {
		panic(err)
	}
	edit := metadata.NewImage(defaults).Edit()
	for i, spec := range topics {
		name, leaders, _ := strings.Cut(spec, "=")
		t := metadata.Topic{Name: name, ID: metadata.TopicID{15: byte(i + 1)}, Set: map[string]string{"muster.redis.layout": "log"}}
		if name == "s" {
			t.Set["muster.redis.layout"] = "stream"
		}
		for leader := range strings.SplitSeq(leaders, ",") {
			n, err := strconv.Atoi(leader)
			if err != nil {
				panic(err)
			}
			t.Partitions = append(t.Partitions, metadata.Partition{Leader: int32(n)})
		}
		edit.PutTopic(t)
	}
	return edit.Image()
}
