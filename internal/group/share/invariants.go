package share

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"muster/internal/group/kind"
)

// Check says what is wrong with a share group.
func (g *Group) Check() error {
	if err := g.Group.Check(); err != nil {
		return err
	}
	again := New(kind.Base{})
	for _, mem := range g.Members {
		again.Count(mem, 1)
		if err := g.checkMember(mem); err != nil {
			return fmt.Errorf("member %q: %w", mem.ID, err)
		}
	}
	switch {
	case again.bytes != g.bytes:
		return fmt.Errorf("members hold %d bytes, counted are %d", again.bytes, g.bytes)
	case !maps.Equal(again.names, g.names):
		return fmt.Errorf("topics %v, counted are %v", again.names, g.names)
	case slices.ContainsFunc(g.topics.initializing, func(p partition) bool { return has(g.topics.initialized, p) }):
		return errors.New("a partition is initialized, and is being initialized")
	case g.asking != nil && g.asking.g != g:
		return errors.New("another group has asked")
	}
	return nil
}

// checkMember says whether a member has what it is to have, and whether that is initialized.
func (g *Group) checkMember(mem *Member) error {
	now := mem.Now()
	if len(now.Pending) > 0 || now.State != 0 {
		return errors.New("has something to let go of, or waits for others to")
	}
	for _, p := range mem.Target {
		if slices.Contains(g.topics.deleting, p.Topic) || !g.isKnown(p) {
			return fmt.Errorf("is to have partition %d of %x, which is not initialized", p.Number, p.Topic)
		}
	}
	return nil
}

// isKnown says whether a partition is, or was before the last look at the topics, initialized.
func (g *Group) isKnown(p partition) bool {
	if g.Seen == nil || g.Seen.TopicByID(p.Topic) == nil {
		return true
	}
	return has(g.topics.initialized, p)
}
