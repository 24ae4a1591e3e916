package lag

import (
	"testing"
	"time"
)

// watch lets a group commit whenever commits says so, at each pass, while there is lag
// or not, and returns what is remembered at the end.
func watch(passes int, commits func(pass int) movement, lags func(pass int) bool) (*progress, tick) {
	p := &progress{}
	now := hour
	p.observe(now, appeared, lags(0))
	for pass := 1; pass <= passes; pass++ {
		now += step
		p.observe(now, commits(pass), lags(pass))
	}
	return p, now
}

func always(int) bool { return true }

func every(n, until int) func(int) movement {
	return func(pass int) movement {
		if pass%n == 0 && pass <= until {
			return advanced
		}
		return stayed
	}
}

func TestPartitionIsStuckAfterFiveMinutesWithoutProgress(t *testing.T) {
	for _, c := range []struct {
		name    string
		passes  int
		commits func(int) movement
		lags    func(int) bool
		stuck   bool
	}{
		{"never moved, nearly five minutes", 29, every(1, 0), always, false},
		{"never moved, five minutes", 30, every(1, 0), always, true},
		{"moves", 300, every(3, 300), always, false},
		{"moved, then stood still for nearly five minutes", 59, every(1, 30), always, false},
		{"moved, then stood still for five minutes", 60, every(1, 30), always, true},
		{"without lag", 300, every(1, 0), func(int) bool { return false }, false},
		{"lag began a moment ago", 300, every(1, 0), func(pass int) bool { return pass > 290 }, false},
		{"lag began five minutes ago", 300, every(1, 0), func(pass int) bool { return pass >= 270 }, true},
		{"once without lag", 300, every(1, 0), func(pass int) bool { return pass != 290 }, false},
		{"usually commits every 3 minutes, 14 without", 180 + 84, every(18, 180), always, false},
		{"usually commits every 3 minutes, 15 without", 180 + 90, every(18, 180), always, true},
	} {
		p, now := watch(c.passes, c.commits, c.lags)
		if got := p.judge(reading{now: now, members: true, owner: OwnerNone, committed: -1}); (got == NoOwner) != c.stuck || got != NoOwner && got != Fine {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestVerdictSaysWhoStandsStill(t *testing.T) {
	p, now := watch(60, every(1, 0), always)
	for _, c := range []struct {
		name string
		reading
		want Verdict
	}{
		{"no members", reading{owner: OwnerNone, committed: -1}, Stopped},
		{"no owner", reading{members: true, owner: OwnerNone, fetched: 0}, NoOwner},
		{"its owner never fetched", reading{members: true, owner: OwnerMember, fetched: -1}, NotFetching},
		{"its owner fetched a minute ago", reading{members: true, owner: OwnerMember, fetched: time.Minute}, NotFetching},
		{"its owner fetches", reading{members: true, owner: OwnerMember, fetched: 59 * time.Second, committed: -1}, NotCommitting},
		{"its owner fetches and committed long ago", reading{members: true, owner: OwnerMember, committed: 5 * time.Minute}, NotCommitting},
		{"its owner fetches and commits the same", reading{members: true, owner: OwnerMember, committed: 5*time.Minute - 1}, Stalled},
		{"its owner fetches and committed in 1970", reading{members: true, owner: OwnerMember, committed: 56 * 365 * 24 * time.Hour}, NotCommitting},
		{"nobody knows who reads", reading{members: true, committed: -1}, Stopped},
		{"nobody knows who reads, it commits", reading{members: true, committed: time.Minute}, Stalled},
		{"nobody knows who reads, it committed", reading{members: true, committed: time.Hour}, Stopped},
		{"an open transaction", reading{members: true, owner: OwnerMember, held: true}, Fine},
	} {
		c.now = now
		if got := p.judge(c.reading); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if stuck := c.want != Fine && c.want != Stopped; c.want.Stuck() != stuck {
			t.Errorf("%v counts as stuck: %t", c.want, !stuck)
		}
	}
	if Rewound.String() != "rewound" || NoOwner.String() != "no-owner" || Rewound.Stuck() {
		t.Error("a verdict has another name")
	}
}

func TestGroupThatWentBackIsToldForFiveMinutes(t *testing.T) {
	back := func(pass int) movement {
		if pass == 50 {
			return wentBack
		}
		return advanced
	}
	for passes, want := range map[int]Verdict{49: Fine, 50: Rewound, 79: Rewound, 80: Fine} {
		p, now := watch(passes, back, always)
		if got := p.judge(reading{now: now, members: true, owner: OwnerMember, fetched: -1}); got != want {
			t.Errorf("after %d passes: %v", passes, got)
		}
	}
}

func TestOneLongWaitIsNotUsual(t *testing.T) {
	once := func(pass int) movement {
		if pass > 100 && pass < 1000 {
			return stayed // Two and a half hours.
		}
		return advanced
	}
	p, _ := watch(1001, once, always)
	if p.patience() > 15*minute {
		t.Errorf("after one long wait the patience is %d minutes", p.patience()/minute)
	}
	p, _ = watch(1020, once, always)
	if p.patience() != stuckAfter {
		t.Errorf("and stays %d minutes", p.patience()/minute)
	}
	p, _ = watch(4000, every(360, 4000), always) // A group that commits each hour.
	if p.patience() < 2*hour {
		t.Errorf("a slow group is given %d minutes", p.patience()/minute)
	}
}
