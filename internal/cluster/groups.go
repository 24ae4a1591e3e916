package cluster

import (
	"context"
	"maps"
	"math"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/metadata"
	"muster/internal/metadata/config"
)

// Limits of the settings of groups: anyone may give some to a group of any name,
// whether there is such a group or not.
const (
	maxGroupName  = math.MaxInt16 // as in the records of a group
	maxGroups     = 10_000
	maxGroupBytes = 4 << 20 // of names and settings together
)

// AlterGroup changes settings of a group, which need not exist: all of them if replace
// is set, those named otherwise. A group whose last setting goes is forgotten.
func (c *Controller) AlterGroup(ctx context.Context, group string, changes []metadata.ConfigChange, replace, validateOnly bool) error {
	switch {
	case group == "":
		return metadata.Refuse(kerr.InvalidRequest, "the name of a group must not be empty: groups have no settings together but those of the broker")
	case len(group) > maxGroupName:
		return metadata.Refuse(kerr.InvalidRequest, "the name of a group has at most %d bytes, this one has %d", maxGroupName, len(group))
	}
	return c.durably(ctx, func() error {
		image := c.image.Load()
		old := image.GroupSettings.Of(group)
		current := func(n string) string { return config.GroupValue(image.Config, old, n) }
		set, err := apply(groupKind, old, current, changes, replace)
		if err != nil {
			return err
		}
		if err := config.CheckGroupSet(image.Config, set); err != nil {
			return metadata.Refuse(kerr.InvalidConfig, "%s", err)
		}
		if err := checkRoom(image.GroupSettings, group, set); err != nil || validateOnly || maps.Equal(old, set) {
			return err
		}
		edit := image.Edit()
		edit.SetGroup(group, set)
		return c.change(ctx, edit, groupRecord(group, set))
	})
}

// checkRoom refuses settings that would take more room than there is. What takes less
// than before is never refused.
func checkRoom(s *metadata.GroupSettings, group string, set map[string]string) error {
	switch groups, bytes := s.With(group, set); {
	case groups > max(maxGroups, s.Len()):
		return metadata.Refuse(kerr.PolicyViolation, "there are %d groups with settings already, which is the limit", s.Len())
	case bytes > max(maxGroupBytes, s.Size()):
		return metadata.Refuse(kerr.PolicyViolation, "the settings of groups would take %d bytes, which is more than %d", bytes, maxGroupBytes)
	}
	return nil
}
