package handler

import (
	"slices"
	"strings"

	"muster/internal/auth"
	"muster/internal/metadata"
)

const superUsers = "super.users"

// withAllSuperUsers adds to super.users who is a super user by another setting, the first
// user. That setting is not shown, since a password is in it, and whoever wants to know who
// may do what has to know of all super users.
func withAllSuperUsers(image *metadata.Image, settings []setting) []setting {
	named, err := auth.ParseSuperUsers(settings[0].value)
	if err != nil {
		return settings
	}
	all := settings[0].value
	for _, p := range image.Rules.Policy().SuperUsers {
		if slices.Contains(named, p) || strings.Contains(string(p), ";") {
			continue
		}
		if all != "" {
			all += ";"
		}
		all += string(p)
	}
	if all == settings[0].value {
		return settings
	}
	return append([]setting{{name: superUsers, value: all, source: sourceStaticBroker, unlisted: true}}, settings...)
}
