package web

import (
	"context"
	"errors"
	"time"

	"muster/internal/auth"
	"muster/internal/metadata"
	"muster/internal/watch"
	"muster/internal/watch/explain"
	"muster/internal/watch/groupview"
	"muster/internal/watch/lag"
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
	// who does (ElsewhereError).
	Source() groupview.Source
	// HeldBack finds, among the partitions in which a group has lag, those that an open
	// transaction holds back, and whose it is.
	HeldBack(ctx context.Context, g *groupview.Group, now time.Time) (map[groupview.TopicPartition]explain.HeldBack, error)
	// Changes returns the groups that something happened to from a number on, and the
	// number of the next change. It may have forgotten some in between.
	Changes(from uint64) (groups []string, next uint64, missed bool)
	// Journal searches the group journal.
	Journal(ctx context.Context, q JournalQuery) (*JournalPage, error)
}

// JournalQuery is what is looked for in the group journal.
type JournalQuery struct {
	Group string // Empty for all.
	Since time.Time
	Limit int // The latest so many.
	// Match says whether an entry is wanted.
	Match func(*explain.Entry) bool
}

// JournalPage is what was found there.
type JournalPage struct {
	Exists  bool            // Whether there is a journal.
	Entries []explain.Entry // The oldest first.
	Partly  bool            // There is more: the search ended before it had seen everything, or found more than the limit.
	Others  []int32         // The brokers that have the rest.
}

// ErrLogin is that a name and a password do not belong together.
var ErrLogin = errors.New("no user has this name and password")

// ErrLoginBusy is that too many are logging in.
var ErrLoginBusy = errors.New("too many are logging in")

// ErrToken is that a token is not accepted.
var ErrToken = errors.New("the token is not accepted")

// Attempt is somebody who says who they are.
type Attempt struct {
	Way            string // As in Session.Login.
	Name, Password string
	Token          string // Instead of these, of an issuer.
	Host           string // That they come from.
}

// Identity is who somebody has shown to be.
type Identity struct {
	Principal auth.Principal
	Groups    auth.Groups // That they are in.
	// Proof is a mark of what they have shown it by, empty for what holds until it ends.
	Proof string
	// Ends is when it counts no more; zero for never.
	Ends time.Time
}

// Gate says who people are and what they may do.
type Gate interface {
	// WantsLogin says whether people must say who they are.
	WantsLogin() bool
	// AlwaysWantsLogin says whether they must though there are no users in the cluster.
	AlwaysWantsLogin() bool
	// Login says who somebody is. It is ErrLogin or ErrToken after a while if they are
	// not, and ErrLoginBusy if too many ask.
	Login(ctx context.Context, a Attempt) (Identity, error)
	// Holds says whether what somebody has shown would still do: the password is the
	// same, and the user is there.
	Holds(id Identity) bool
	// Issuer is where people can log in elsewhere; nil for nowhere.
	Issuer() Issuer
	// LoggedOut hears of those who log out.
	LoggedOut(id Identity, host string)
	// May says whether somebody may do something. A denial is noted, and the command
	// returned that would allow it.
	May(q auth.Request) (allowed bool, command string)
	// Sees says the same of one thing among many, and notes nothing.
	Sees(q auth.Request) bool
}
