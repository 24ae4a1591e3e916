package lag

// Records knows the timestamps of records.
type Records interface {
	// FirstTime returns the timestamp of the first record of a partition at or after
	// an offset, in milliseconds since 1970: of the batch's head by the index, linear
	// within the batch. It is asked if that record is older than what the tracker has
	// seen, and again only when the group has moved.
	FirstTime(topic string, partition int32, offset int64) (millis int64, ok bool)
}

// appended returns when a record was appended, in milliseconds since 1970, and whether
// that is known; if not, it was then or earlier.
//
// The points of the table bound it. A window as wide as they usually are is shared out
// evenly among its records; of layout stream the offset tells. If passes were missed, and
// of what is older than the table, the record's timestamp is asked for. Whoever tells a time may err (producers with wrong clocks, old
// CreateTimes): it is clamped into the window.
func (t *Tracker) appended(l *log, offset int64) (millis int64, known bool) {
	from, to, older, beyond := l.table.window(offset)
	if beyond {
		return t.nowMillis, true
	}
	latest := t.millis(to.at)
	if older || to.at-from.at > max(spacing(t.now-from.at), 2*step) {
		if t.asked >= t.maxAsked {
			return latest, false
		}
		at, ok := t.records.FirstTime(l.Topic, l.Partition, offset)
		if !ok {
			return latest, false // Of what others lead it is each time so, and costs nothing.
		}
		t.asked++
		if older {
			return min(at, latest), true
		}
		return clamp(at, t.millis(from.at), latest), true
	}
	earliest := t.millis(from.at)
	if l.TimeBits > 0 {
		return clamp(offset>>l.TimeBits, earliest, latest), true
	}
	return between(earliest, latest, offset-from.end(), to.end()-from.end()), true
}

// between returns the time of the record of that number of several that came one
// after the other.
func between(earliest, latest, number, records int64) int64 {
	return earliest + int64(float64(latest-earliest)*(float64(number)/float64(records)))
}

func clamp(n, low, high int64) int64 { return min(max(n, low), high) }
