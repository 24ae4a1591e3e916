package window

import "fmt"

// CheckInvariants says what is wrong with the state, nil if nothing is.
func (p *Partition) CheckInvariants() error {
	at := p.start
	for i := range p.runs {
		r := &p.runs[i]
		switch {
		case r.first != at || r.last < r.first:
			return fmt.Errorf("a run is from %d to %d, after one that ends before %d", r.first, r.last, at)
		case i > 0 && p.runs[i-1].is == r.is:
			return fmt.Errorf("the runs that meet at %d are alike", r.first)
		}
		if err := p.checkState(r); err != nil {
			return fmt.Errorf("from %d to %d: %w", r.first, r.last, err)
		}
		at = r.last + 1
	}
	switch {
	case at != p.next:
		return fmt.Errorf("runs end before %d, the window before %d", at, p.next)
	case len(p.runs) > 0 && p.runs[0].state.isTerminal():
		return fmt.Errorf("the start %d needs no delivery", p.start)
	}
	return nil
}

func (p *Partition) checkState(r *run) error {
	_, underWay := p.writes[r.write]
	switch {
	case r.state == Acquired && r.count < 1:
		return fmt.Errorf("acquired with count %d", r.count)
	case (r.state == Acquired) != (r.until != 0):
		return fmt.Errorf("state %d with a lock until %d", r.state, r.until)
	case r.state != Acquired && (r.member != "" || r.write != 0):
		return fmt.Errorf("state %d belongs to %q, write %d", r.state, r.member, r.write)
	case (r.write != 0) != underWay:
		return fmt.Errorf("write %d is under way: %t", r.write, underWay)
	case r.write == 0 && r.then != 0:
		return fmt.Errorf("is to be %d without a write", r.then)
	}
	return nil
}
