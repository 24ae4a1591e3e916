package explain

import (
	"fmt"

	"muster/internal/journal"
	"muster/internal/watch/groupview"
	"muster/internal/words"
)

// each words things one by one.
func each[T any](things []T, word func(T) string) []string {
	out := make([]string, len(things))
	for i, t := range things {
		out[i] = word(t)
	}
	return out
}

// name words a member: by its group instance id if it is static.
func name(w journal.Who) string {
	out := groupview.MemberOf(w.ClientID, w.Member)
	if w.Instance != "" {
		out = w.Instance
	}
	if w.Host == "" {
		return out
	}
	return out + " at " + w.Host
}

// member words a static member by its member id, since two have its instance id.
func member(w journal.Who) string {
	out := groupview.ShortMember(w.Member)
	if w.Host != "" {
		out += " at " + w.Host
	}
	if w.ClientID != "" {
		out += " (client " + w.ClientID + ")"
	}
	return out
}

// client words who sent a request without being a member.
func client(w journal.Who) string {
	out := "client " + w.ClientID
	if w.ClientID == "" {
		out = "a client"
	}
	if w.Host == "" {
		return out
	}
	return out + " at " + w.Host
}

func listWho(why []journal.Trigger) string {
	return words.List(each(why, func(t journal.Trigger) string { return name(t.Who) }))
}

func listMembers[T fmt.Stringer](members []T) string { return words.List(each(members, T.String)) }
