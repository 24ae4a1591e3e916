// UpdateFeatures (key 57) changes the levels of features. Here they come with the version
// of the broker, so that a feature can only be told to stay what it is.
//
//	v0 the original fields; v1 kinds of upgrades, and only to check; v2 no results
//
// As in Kafka, what is wrong with one update is the answer to all of them.

package handler

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
	"muster/internal/metadata"
)

func (h *Handler) updateFeatures(_ context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.UpdateFeaturesRequest)
	resp := req.ResponseKind().(*kmsg.UpdateFeaturesResponse)
	name := func(f *kmsg.UpdateFeaturesRequestFeatureUpdate) string { return f.Feature }
	updates := once(req.FeatureUpdates, name)
	err := c.needsCluster(auth.Alter)
	for i := 0; i < len(updates) && err == nil; i++ {
		err = checkFeature(&updates[i], req.Version)
	}
	resp.ErrorCode, resp.ErrorMessage = h.code(err)
	for i := 0; i < len(updates) && req.Version < 2; i++ {
		out := kmsg.NewUpdateFeaturesResponseResult()
		out.Feature, out.ErrorCode, out.ErrorMessage = updates[i].Feature, resp.ErrorCode, resp.ErrorMessage
		resp.Results = append(resp.Results, out)
	}
	return resp, nil
}

// Kinds of upgrades. Version 0 only says whether a level may fall.
const (
	upgrade         = 1
	safeDowngrade   = 2
	unsafeDowngrade = 3
)

// checkFeature says why a feature cannot have a level.
func checkFeature(f *kmsg.UpdateFeaturesRequestFeatureUpdate, version int16) error {
	kind := f.UpgradeType
	if version == 0 {
		kind = upgrade
		if f.AllowDowngrade {
			kind = safeDowngrade
		}
	}
	refuse := func(why string) error {
		return metadata.Refuse(kerr.InvalidUpdateVersion, "invalid version %d of feature %s: %s", f.MaxVersionLevel, f.Feature, why)
	}
	i := slices.IndexFunc(features, func(x feature) bool { return x.name == f.Feature })
	switch {
	case kind < upgrade || kind > unsafeDowngrade:
		return refuse("the type of upgrade is unknown")
	case f.MaxVersionLevel < 0:
		return refuse("it must not be negative")
	case i < 0:
		return refuse("the broker does not support this feature")
	}
	switch level := features[i].level; {
	case f.MaxVersionLevel > level:
		return refuse("the broker does not support it")
	case f.MaxVersionLevel < level && kind == upgrade:
		return refuse("a downgrade must be asked for as one")
	case f.MaxVersionLevel < level:
		return metadata.Refuse(kerr.FeatureUpdateFailed, "feature %s cannot be downgraded: its version %d comes with the version of the broker", f.Feature, level)
	}
	return nil
}
