package handler

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/metadata"
	"muster/internal/metadata/config"
)

// maxDescribedGroups is how many groups one answer describes. Any name is answered, so
// that short names could ask for an answer many times as long.
const maxDescribedGroups = 2000

// describeGroup describes a group, whether there is one of that name or not, as Kafka
// does. It is the n-th that is asked for.
func describeGroup(image *metadata.Image, r *kmsg.DescribeConfigsRequestResource, req *kmsg.DescribeConfigsRequest, n int) ([]kmsg.DescribeConfigsResponseResourceConfig, error) {
	switch {
	case r.ResourceName == "":
		return nil, metadata.Refuse(kerr.InvalidRequest, "the name of a group must not be empty")
	case n > maxDescribedGroups:
		return nil, metadata.Refuse(kerr.InvalidRequest, "one request may ask for the settings of %d groups", maxDescribedGroups)
	}
	own := image.GroupSettings.Of(r.ResourceName)
	return describeDefs(config.GroupDefs(), r.ConfigNames, req, func(d *config.Def) []setting {
		broker := []setting{{name: d.Name, value: d.Default, source: sourceDefault}}
		if d.Synonym != "" {
			broker = brokerSettings(image, d.Synonym)
		}
		if v, ok := own[d.Name]; ok {
			return slices.Insert(broker, 0, setting{name: d.Name, value: v, source: sourceGroup})
		}
		return broker
	}), nil
}
