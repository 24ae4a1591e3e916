package lag

import (
	"math"
	"time"
)

// CatchUp says when a group will have read everything.
type CatchUp uint8

// What can be said of it.
const (
	CaughtUp     CatchUp = iota // There is no lag.
	Unknown                     // The group has not been watched for long enough.
	NotCatching                 // It does not get nearer to the end, or hardly.
	Catching                    // It will, after some time.
	farthestDays = 10 * 365
)

// catchFactor is how much faster than producers a group must be before we dare to
// say when it will have caught up: close to 1 the time is arbitrary.
const catchFactor = 1.05

// Forecast returns how long a group will take at its present rates.
func Forecast(lag int64, r Rates) (CatchUp, time.Duration) {
	switch {
	case lag <= 0:
		return CaughtUp, 0
	case !r.Known:
		return Unknown, 0
	case r.Consumed <= catchFactor*r.Produced:
		return NotCatching, 0
	}
	took, ok := duration(float64(lag) / (r.Consumed - r.Produced))
	if !ok {
		return NotCatching, 0
	}
	return Catching, took
}

// duration turns seconds into a duration. What is farther away than ten years is no
// forecast.
func duration(seconds float64) (time.Duration, bool) {
	if math.IsNaN(seconds) || seconds > farthestDays*24*3600 {
		return 0, false
	}
	return time.Duration(max(seconds, 0) * float64(time.Second)), true
}

// Retention is what a partition is kept within. What is 0 or negative has no limit.
type Retention struct {
	Age   time.Duration
	Bytes int64
	Size  int64 // What it has now, in bytes.
}

// pace is how a group gets on in a partition.
type pace struct {
	lag      int64
	records  int64   // That the log has.
	age      float64 // Of the first unread record, in seconds.
	aging    float64 // How many seconds older that becomes each second: 1 if the group stands still.
	growing  float64 // How many records are produced each second beyond those consumed.
	noGrowth bool    // That is not known.
}

// margin returns how long the first unread record is still kept if no one reads it, by
// its age, and whether there is such a limit.
func (r Retention) margin(age float64) (seconds float64, limited bool) {
	return r.Age.Seconds() - age, r.Age > 0
}

// overtakes returns in how many seconds retention deletes what the group has not read,
// at its present pace. By age that is when the first unread record is too old; by size,
// when the unread records are as many as fit, by the mean size of what the log has.
// Whole segments are deleted, so it may come later, never much earlier.
func (r Retention) overtakes(p pace) (seconds float64, will bool) {
	if p.lag <= 0 {
		return 0, false
	}
	seconds = math.Inf(1)
	if left, limited := r.margin(p.age); limited {
		switch {
		case left <= 0:
			seconds = 0
		case p.aging > 0:
			seconds = left / p.aging
		}
	}
	if r.Bytes > 0 && r.Size > 0 && p.records > 0 && !p.noGrowth {
		fit := float64(p.records) * (float64(r.Bytes) / float64(r.Size))
		switch left := fit - float64(p.lag); {
		case left <= 0:
			seconds = 0
		case p.growing > 0:
			seconds = min(seconds, left/p.growing)
		}
	}
	return seconds, !math.IsInf(seconds, 1)
}
