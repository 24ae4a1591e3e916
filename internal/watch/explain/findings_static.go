package explain

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"muster/internal/journal"
	"muster/internal/words"
)

// takeovers is how the place of a static member was taken.
type takeovers struct {
	times  []time.Time // When another process took it, without a rebalance.
	fenced *Entry      // The last request of a process that had lost it.
}

// placesTaken finds static members that two processes want to be.
func (e *Evidence) placesTaken() []Finding {
	places := map[string]*takeovers{}
	for i := range e.Entries {
		entry := &e.Entries[i]
		for _, t := range entry.Triggers {
			if entry.Kind != journal.KindReplaced && entry.Kind != journal.KindFenced {
				continue
			}
			if places[t.Instance] == nil {
				places[t.Instance] = &takeovers{}
			}
			switch place := places[t.Instance]; {
			case entry.Kind == journal.KindReplaced:
				place.times = append(place.times, entry.Time)
			case !t.Parked: // What was parked may be of a process that had died.
				place.fenced = entry
			}
		}
	}
	var out []Finding
	for _, instance := range slices.Sorted(maps.Keys(places)) {
		if text := places[instance].text(instance, e.Now); text != "" {
			out = append(out, Finding{
				"instance-id-taken-twice", text,
				"Give every process a group.instance.id of its own, for example its pod's name in a StatefulSet.",
			})
		}
	}
	return out
}

// text words what is odd about it, nothing if a process was restarted and that
// was all.
func (x *takeovers) text(instance string, now time.Time) string {
	n := len(x.times)
	switch {
	case x.fenced != nil && x.fenced.Triggers[0].Kind == journal.TriggerUnreleased:
		t := &x.fenced.Triggers[0]
		return fmt.Sprintf("Two processes have the group.instance.id %s: %s came with it %s, while %s had it. It was told UNRELEASED_INSTANCE_ID, at which clients stop.",
			instance, member(t.Who), words.Ago(x.fenced.Time, now), holder(t))
	case x.fenced != nil:
		t := &x.fenced.Triggers[0]
		return fmt.Sprintf("Two processes have the group.instance.id %s, or had for a while: %s still sent %s %s, after %s had taken its place. It was told FENCED_INSTANCE_ID, at which clients stop.",
			instance, member(t.Who), t.Request, words.Ago(x.fenced.Time, now), holder(t))
	case n >= replacedTooOften && x.times[n-1].Sub(x.times[n-replacedTooOften]) <= stormWindow:
		return fmt.Sprintf("Static member %s was replaced %d times, most recently %s. Two processes may have the same group.instance.id, and push each other out; or it crashes again and again.", instance, n, words.Ago(x.times[n-1], now))
	}
	return ""
}

// notTakenUp finds static members that came back with another subscription, which
// nothing has happened to since.
func (e *Evidence) notTakenUp() []Finding {
	if e.Group == nil {
		return nil
	}
	waiting := map[string]journal.Trigger{}
	for i := range e.Entries {
		entry := &e.Entries[i]
		switch entry.Kind {
		case journal.KindSettled:
			clear(waiting)
		case journal.KindReplaced:
			for _, t := range entry.Triggers {
				if delete(waiting, t.Instance); subscribes(t.Change) {
					waiting[t.Instance] = t
				}
			}
		}
	}
	var out []Finding
	for _, m := range e.Group.Members {
		if m.Instance == nil {
			continue
		}
		t, ok := waiting[*m.Instance]
		if !ok || t.Member != m.ID {
			continue
		}
		out = append(out, Finding{
			"subscription-not-taken-up",
			fmt.Sprintf("Static member %s restarted and came back %s. By Kafka's rule a static member takes its old place without a rebalance, so nobody has acted on that: it still has the partitions that it had before.", name(t.Who), changeWords(t.Change, "")),
			fmt.Sprintf("Make the group rebalance: %s; the process joins again by itself.", words.Command("groups members remove", e.Group.Name, "--instance-id", *m.Instance)),
		})
	}
	return out
}

// subscribes says whether a change is of what a member reads.
func subscribes(c *journal.Change) bool {
	return c != nil && c.TopicsAddedN+c.TopicsRemovedN > 0
}
