package explain

import (
	"time"

	"muster/internal/watch/lag"
	"muster/internal/words"
)

var paceTexts = map[string]string{
	lag.PaceUnknown.String(): "not known", lag.PaceCaughtUp.String(): "caught up", lag.PaceKeepingUp.String(): "keeping up",
	lag.PaceNotCatchingUp.String(): "not catching up", lag.PaceHeldBack.String(): "waits for a transaction",
	lag.PaceNoMembers.String(): "no members", lag.PaceTooEarly.String(): "too early to say",
}

// PaceText words how a group gets on, a lag.Pace by its name, and how long it takes to
// catch up if it does. It is the same wherever groups are told of.
func PaceText(pace string, in time.Duration) string {
	if pace == lag.PaceCatchingUp.String() {
		return "in " + words.Duration(in.Round(time.Second))
	}
	return paceTexts[pace]
}
