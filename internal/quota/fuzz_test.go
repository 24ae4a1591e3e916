package quota

import (
	"encoding/binary"
	"math"
	"testing"
	"time"
)

// Whatever number AlterClientQuotas brings, and whatever is taken when, no one waits for
// less than nothing or longer than the longest time, and a bucket never holds something
// that is no number or more than it may.
func FuzzBucket(f *testing.F) {
	f.Add(1e6, 0.5, uint8(11), []byte("\x00\x10\x00\x01\x01\xff\x00\x20\x02\x00\x00\x00\x03\x40"))
	f.Add(math.Inf(1), math.NaN(), uint8(0), []byte("\x00\x10\x00\x01\x04\x00\x00\x00"))
	f.Add(math.MaxFloat64, math.SmallestNonzeroFloat64, uint8(255), []byte("\x02\x10\x00\x01\x04\x00\x00\x00\x00\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, rate, next float64, windows uint8, script []byte) {
		now := time.Unix(1000, 0)
		limit := Limit{PerSecond: rate, Windows: int(windows), Window: time.Second, Full: windows%2 == 0}
		b := NewBucket(limit, now)
		for ; len(script) >= 4; script = script[4:] {
			now = now.Add(time.Duration(int8(script[1])) * 100 * time.Millisecond) // A clock may go back.
			n, wait := float64(binary.BigEndian.Uint16(script[2:]))*1000, time.Duration(0)
			switch script[0] % 5 {
			case 0:
				wait = b.Take(n, now)
			case 1:
				wait = b.TakeIfThere(n, now)
			case 2:
				wait = b.TakeUnlessOwing(n, now)
			case 3:
				wait = b.Owing(now)
			case 4:
				rate, next = next, rate
				limit.PerSecond = rate
				b.Alter(limit, now)
			}
			level, room := b.Level(now), b.Room(now)
			if wait < 0 || wait > Longest || wait%time.Millisecond != 0 || math.IsNaN(level) || math.IsNaN(room) || room < 0 || level > b.limit.most() {
				t.Fatalf("%+v: wait %v, level %v, room %v", b.limit, wait, level, room)
			}
		}
	})
}
