package main

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// takeovers is how the place of a static member was taken.
type takeovers struct {
	times  []time.Time   // When another process took it, without a rebalance.
	fenced *journalEntry // The last request of a process that had lost it.
}

// placesTaken finds static members that two processes want to be.
func (e *evidence) placesTaken() []finding {
	places := map[string]*takeovers{}
	for i := range e.entries {
		entry := &e.entries[i]
		for _, t := range entry.Triggers {
			if entry.Kind != entryReplaced && entry.Kind != entryFenced {
				continue
			}
			if places[t.Instance] == nil {
				places[t.Instance] = &takeovers{}
			}
			switch place := places[t.Instance]; {
			case entry.Kind == entryReplaced:
				place.times = append(place.times, entry.Time)
			case !t.Parked: // What was parked may be of a process that had died.
				place.fenced = entry
			}
		}
	}
	var out []finding
	for _, instance := range slices.Sorted(maps.Keys(places)) {
		if text := places[instance].text(instance, e.now); text != "" {
			out = append(out, finding{
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
	case x.fenced != nil:
		t := x.fenced.Triggers[0]
		return fmt.Sprintf("Two processes have the group.instance.id %s, or had for a while: %s still sent %s %s, after %s had taken its place. It was told FENCED_INSTANCE_ID, at which clients stop.",
			instance, t.member(), t.Request, ago(x.fenced.Time, now), t.holder())
	case n >= replacedTooOften && x.times[n-1].Sub(x.times[n-replacedTooOften]) <= stormWindow:
		return fmt.Sprintf("Static member %s was replaced %d times, most recently %s. Two processes may have the same group.instance.id, and push each other out; or it crashes again and again.", instance, n, ago(x.times[n-1], now))
	}
	return ""
}

// notTakenUp finds static members that came back with another subscription, which
// nothing has happened to since.
func (e *evidence) notTakenUp() []finding {
	if e.group == nil {
		return nil
	}
	waiting := map[string]journalTrigger{}
	for i := range e.entries {
		entry := &e.entries[i]
		switch entry.Kind {
		case entrySettled:
			clear(waiting)
		case entryReplaced:
			for _, t := range entry.Triggers {
				if delete(waiting, t.Instance); t.Change.subscribes() {
					waiting[t.Instance] = t
				}
			}
		}
	}
	var out []finding
	for _, m := range e.group.Members {
		if m.Instance == nil {
			continue
		}
		t, ok := waiting[*m.Instance]
		if !ok || t.Member != m.Member {
			continue
		}
		out = append(out, finding{
			"subscription-not-taken-up",
			fmt.Sprintf("Static member %s restarted and came back %s. By Kafka's rule a static member takes its old place without a rebalance, so nobody has acted on that: it still has the partitions that it had before.", t, t.Change.words("")),
			fmt.Sprintf("Make the group rebalance: muster groups members remove %s --instance-id %s; the process joins again by itself.", e.group.Name, *m.Instance),
		})
	}
	return out
}

// subscribes says whether a change is of what a member reads.
func (c *journalChange) subscribes() bool {
	return c != nil && c.TopicsAddedN+c.TopicsRemovedN > 0
}
