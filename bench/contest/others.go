package contest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"muster/bench/rig"
)

// others watches how much of the machine's processor time goes to programs that
// have nothing to do with this run.
type others struct{ busy, total, own time.Duration }

func newOthers() others {
	o := others{own: rig.OwnTime()}
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return o
	}
	line, _, _ := strings.Cut(string(text), "\n")
	for i, field := range strings.Fields(line)[1:] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil || i > 7 { // What follows, time of guests, is counted already.
			break
		}
		d := time.Duration(n) * time.Second / rig.Ticks
		o.total += d
		if i != 3 && i != 4 { // idle, and idle while the disk works
			o.busy += d
		}
	}
	return o
}

// share says how much others had since o.
func (o others) share() string {
	now := newOthers()
	total := now.total - o.total
	if total <= 0 {
		return ""
	}
	theirs := now.busy - o.busy - (now.own - o.own)
	return fmt.Sprintf("%.0f %%", max(0, 100*theirs.Seconds()/total.Seconds()))
}
