package lag

import "math"

const (
	// rateTime is what rates are an average of.
	rateTime = 5 * minute
	// meterMinutes is how many minutes of counts that takes: the oldest counts in part.
	meterMinutes = int(rateTime/minute) + 1
	// rateAfter is for how long a group must have been watched before there are rates.
	rateAfter = minute
)

// meter counts the records that a group consumes, and those that are produced to what
// it reads, by minute.
type meter struct {
	began    tick   // 0 before the first count.
	minute   uint32 // The number of the newest.
	consumed [meterMinutes]uint32
	produced [meterMinutes]uint32
}

// turn goes on to a time. Minutes that no one counted in had no records.
func (m *meter) turn(now tick) {
	at := uint32(now / minute)
	if m.began == 0 {
		m.began, m.minute = max(now, 1), at
	}
	for steps := 0; m.minute < at; steps++ {
		if steps == meterMinutes {
			m.minute = at
			return
		}
		m.minute++
		i := m.minute % uint32(meterMinutes)
		m.consumed[i], m.produced[i] = 0, 0
	}
}

// add counts records since the last time.
func (m *meter) add(now tick, consumed, produced int64) {
	m.turn(now)
	i := m.minute % uint32(meterMinutes)
	m.consumed[i], m.produced[i] = grow(m.consumed[i], consumed), grow(m.produced[i], produced)
}

func grow(n uint32, by int64) uint32 {
	return uint32(min(int64(n)+clamp(by, 0, math.MaxUint32), math.MaxUint32))
}

// Rates are records per second, over five minutes.
type Rates struct {
	Consumed, Produced float64
	Known              bool // The group has been watched for a minute.
}

// rates returns the average of the last five minutes, or since it was watched. Of the
// oldest minute only the part within that time counts, as if its records had come
// evenly.
func (m *meter) rates(now tick) Rates {
	if m.began == 0 || now-m.began < rateAfter {
		return Rates{}
	}
	m.turn(now)
	oldest := (m.minute + 1) % uint32(meterMinutes)
	part := 1.0
	if now-m.began > rateTime {
		part -= float64(now%minute) / float64(minute)
	}
	total := func(counts *[meterMinutes]uint32) float64 {
		n := 0.0
		for i, c := range counts {
			if uint32(i) == oldest {
				n += part * float64(c)
			} else {
				n += float64(c)
			}
		}
		return n
	}
	over := float64(min(rateTime, now-m.began)) / float64(second)
	return Rates{total(&m.consumed) / over, total(&m.produced) / over, true}
}
