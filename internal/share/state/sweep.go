package state

import "time"

// A sweep writes so many snapshots at most; the rest waits for the next, which follows soon.
const (
	maxSweep   = 500
	sweepAgain = time.Second
)

// sweep writes snapshots of what is idle, so that the log need not be kept for it. If everything is idle, and its snapshots are all there is to it, the log
// is as short as it can be: nothing is written, or it would go on for ever.
func (x *step) sweep() {
	keys := x.keys()
	quiet := true
	for _, k := range keys {
		quiet = quiet && x.isIdle(x.all[k]) && x.all[k].updates == 0
	}
	wrote, after := 0, x.cfg.Idle
	for _, k := range keys {
		p := x.all[k]
		if quiet || !x.isIdle(p) {
			continue
		}
		if wrote == maxSweep {
			after = sweepAgain
			break
		}
		if r := x.snapshot(k, p.ShareSnapshot); x.fits(r) {
			x.write(r)
			wrote++
		}
	}
	x.arm(TimerSweep, after)
}

// prune tells up to where the log need not be kept.
func (x *step) prune() {
	if before := x.unneeded(); before > x.pruned {
		x.pruned = before
		x.out.Notes = append(x.out.Notes, Prune{before})
	}
	x.arm(TimerPrune, x.cfg.Prune)
}

// isIdle says that nothing was written to a share partition for a while, nor of it by a sweep.
func (x *step) isIdle(p *state) bool {
	written := time.UnixMilli(p.WriteTimestamp)
	return x.now.Sub(p.touched) >= x.cfg.Idle && x.now.Sub(written) >= x.cfg.Idle
}

// unneeded is the offset before which there is no record that the next load needs: the first
// snapshot that is the last of its share partition.
func (s *Shard) unneeded() int64 {
	first := s.end
	for _, k := range s.keys() {
		if at := s.all[k].at; at != unknown {
			first = min(first, at)
		}
	}
	return first
}
