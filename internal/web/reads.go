package web

import (
	"context"
	"time"

	"muster/internal/auth"
	"muster/internal/metadata"
	"muster/internal/watch"
	"muster/internal/watch/explain"
	"muster/internal/watch/groupview"
	"muster/internal/watch/lag"
	"muster/internal/web/facts"
	"muster/internal/web/login"
)

// Reads is what the broker tells. Nothing of it changes anything.
type Reads interface {
	// Ready says why nothing can be read now; nil if all can.
	Ready() error
	// Image returns the metadata.
	Image() *metadata.Image
	// Node is this broker's node id.
	Node() int32
	// Snapshot and Lag are those of watch.Watch.
	Snapshot() *watch.Snapshot
	Lag(f func(*lag.Tracker))
	// Source has the facts of groups that this broker coordinates. Of others it says
	// who does (problem.Elsewhere).
	Source() groupview.Source
	// HeldBack finds, among the partitions in which a group has lag, those that an open
	// transaction holds back, and whose it is.
	HeldBack(ctx context.Context, g *groupview.Group, now time.Time) (map[groupview.TopicPartition]explain.HeldBack, error)
	// Changes returns the groups that something happened to from a number on, and the
	// number of the next change. It may have forgotten some in between.
	Changes(from uint64) (groups []string, next uint64, missed bool)
	// Journal searches the group journal.
	Journal(ctx context.Context, q facts.JournalQuery) (*facts.JournalPage, error)
}

// Gate says who people are and what they may do.
type Gate interface {
	// WantsLogin says whether people must say who they are.
	WantsLogin() bool
	// AlwaysWantsLogin says whether they must though there are no users in the cluster.
	AlwaysWantsLogin() bool
	// Login says who somebody is. It is login.ErrLogin or login.ErrToken after a while if they are
	// not, and login.ErrLoginBusy if too many ask.
	Login(ctx context.Context, a login.Attempt) (login.Identity, error)
	// Holds says whether what somebody has shown would still do: the password is the
	// same, and the user is there.
	Holds(id login.Identity) bool
	// Issuer is where people can log in elsewhere; nil for nowhere.
	Issuer() login.Issuer
	// LoggedOut hears of those who log out.
	LoggedOut(id login.Identity, host string)
	// May says whether somebody may do something. A denial is noted, and the command
	// returned that would allow it.
	May(q auth.Request) (allowed bool, command string)
	// Sees says the same of one thing among many, and notes nothing.
	Sees(q auth.Request) bool
}
