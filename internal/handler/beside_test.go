package handler

import (
	"strings"
	"sync/atomic"
	"testing"
)

func TestAPanicBesideARequestIsThatOfTheRequest(t *testing.T) {
	var done atomic.Int32
	panics := func(boom bool) (p any) {
		defer func() { p = recover() }()
		var w beside
		for i := range 10 {
			w.Go(func() {
				if boom && i == 3 {
					panic("a defect")
				}
				done.Add(1)
			})
		}
		w.Wait()
		return nil
	}
	if p := panics(false); p != nil || done.Load() != 10 {
		t.Errorf("%v after %d", p, done.Load())
	}
	if p, _ := panics(true).(string); !strings.Contains(p, "a defect") || !strings.Contains(p, "beside_test.go") || done.Load() != 19 {
		t.Errorf("%v after %d", p, done.Load())
	}
}
