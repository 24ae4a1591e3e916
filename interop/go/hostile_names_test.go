package interop

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// repeatedNames is how often a request says the same.
	repeatedNames = 10_000
	// repeatedInside is how often it does so within each.
	repeatedInside = 10
)

// deletesPrey lists the requests that would delete what the others are about.
var deletesPrey = map[kmsg.Key]bool{kmsg.DeleteTopics: true, kmsg.DeleteRecords: true, kmsg.DeleteGroups: true}

// TestNamesSaidAgainAndAgainTakeLittle sends requests of every kind that name one
// topic, group or partition thousands of times, by several clients at once.
func TestNamesSaidAgainAndAgainTakeLittle(t *testing.T) {
	b := serve(t, t.TempDir())
	createTopic(t, b.addr(), "prey", 100)
	by := newBystander(t, b.addr())
	joinAlone(dial(t, b.addr()), "prey")
	for _, api := range newAttacker(t, b.addr()).apis {
		key := kmsg.Key(api.ApiKey)
		if deletesPrey[key] || key == kmsg.Produce {
			continue
		}
		// The newest versions name topics by id, the oldest by name.
		for _, version := range []int16{api.MinVersion, api.MaxVersion} {
			if req := kmsg.RequestForKey(api.ApiKey); repeat(req, version) {
				t.Run(key.Name(), func(t *testing.T) { repeatAtOnce(t, b, req) })
			}
		}
	}
	by.done()
	checkMemory(t, b)
}

// repeat makes the lists of a request long, with the same in each place; false says
// that there are none.
func repeat(req kmsg.Request, version int16) (any bool) {
	v := reflect.ValueOf(req).Elem()
	req.(interface{ Default() }).Default()
	req.SetVersion(version)
	for i := range v.NumField() {
		f := v.Field(i)
		if f.Kind() == reflect.Slice && f.Type().Elem().Kind() != reflect.Uint8 {
			f.Set(sameAgain(f.Type(), repeatedNames))
			any = true
		} else if f.Kind() == reflect.String {
			f.SetString("prey")
		}
	}
	return any
}

func sameAgain(list reflect.Type, n int) reflect.Value {
	out := reflect.MakeSlice(list, n, n)
	for i := range n {
		nameIt(out.Index(i))
	}
	return out
}

// nameIt fills in what a request asks about: all names are the same.
func nameIt(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("prey")
	case reflect.Int8: // The kind of a config resource or coordinator: a topic.
		v.SetInt(2)
	case reflect.Int64: // A timestamp, offset or producer id.
		v.SetInt(-1)
	case reflect.Pointer:
		if v.Type().Elem().Kind() == reflect.String {
			v.Set(reflect.New(v.Type().Elem()))
			nameIt(v.Elem())
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			v.Set(sameAgain(v.Type(), repeatedInside))
		}
	case reflect.Struct:
		if d, ok := v.Addr().Interface().(interface{ Default() }); ok {
			d.Default()
		}
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; name != "UnknownTags" && name != "TopicID" {
				nameIt(v.Field(i))
			}
		}
	default:
	}
}

// repeatAtOnce has several clients send a request a few times. It must be
// answered, or its connection closed.
func repeatAtOnce(t *testing.T, b *process, req kmsg.Request) {
	frame := formatter.AppendRequest(nil, req, 1)
	var running sync.WaitGroup
	for range 4 {
		w := dial(t, b.addr())
		running.Go(func() {
			for range 2 {
				if _, err := w.Write(frame); err != nil {
					return
				}
				if err := w.skipAnswer(); errors.Is(err, os.ErrDeadlineExceeded) {
					t.Error("no answer")
				} else if err != nil {
					return
				}
			}
		})
	}
	running.Wait()
	t.Logf("v%d, %d KB; the broker took %d MB so far", req.GetVersion(), len(frame)>>10, b.peakMemory()>>20)
}

// skipAnswer reads an answer of any size.
func (w *wire) skipAnswer() error {
	_ = w.SetReadDeadline(time.Now().Add(wireTimeout))
	var head [4]byte
	if _, err := io.ReadFull(w, head[:]); err != nil {
		return err
	}
	_, err := io.CopyN(io.Discard, w, int64(binary.BigEndian.Uint32(head[:])))
	return err
}
