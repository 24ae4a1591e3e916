package partition

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"muster/internal/redistest"
	"muster/internal/store"
	"muster/internal/store/mem"
)

// convertingStore is a store in memory whose logs are of a layout that can be converted.
type convertingStore struct {
	store.Store
	layout  store.Layout
	did     []string
	err     error
	convert func() // is called meanwhile
}

func (s *convertingStore) Open(ctx context.Context, tp store.TopicPartition, epoch int32, cfg store.LogConfig) (store.Log, error) {
	l, err := s.Store.Open(ctx, tp, epoch, cfg)
	if s.layout == store.LayoutIndexed || err != nil {
		return laidLog{l, s}, err
	}
	return convertingLog{laidLog{l, s}}, err
}

type laidLog struct {
	store.Log
	s *convertingStore
}

func (l laidLog) Layout() store.Layout { return l.s.layout }

type convertingLog struct{ laidLog }

func (l convertingLog) Preview(context.Context) (store.Conversion, error) {
	l.s.did = append(l.s.did, "preview")
	return store.Conversion{Records: 5}, l.s.err
}

func (l convertingLog) Prepare(context.Context, time.Duration) (int64, bool, error) {
	l.s.did = append(l.s.did, "prepare")
	return 3, false, l.s.err
}

func (l convertingLog) Convert(context.Context) error {
	l.s.did = append(l.s.did, "convert")
	if l.s.convert != nil {
		l.s.convert()
	}
	if l.s.err == nil {
		l.s.layout = store.LayoutIndexed
	}
	return l.s.err
}

// leader waits until the partition is led under an epoch.
func (r *rig) leader(epoch int32) {
	r.t.Helper()
	redistest.Eventually(r.t, "the next leader epoch", func() bool {
		p := r.part()
		return p != nil && p.epoch == epoch
	})
}

func TestAConvertedPartitionIsLedUnderAHigherEpoch(t *testing.T) {
	s := &convertingStore{Store: mem.New(), layout: store.LayoutLog}
	r := newRig(t, s, nil)
	r.wantAppend(r.batch(plain, 2), 0)
	p := r.part()
	if x, err := p.PreviewConversion(t.Context()); err != nil || x.Records != 5 {
		t.Errorf("the preview: %+v, %v", x, err)
	}
	if n, done, err := p.PrepareConversion(t.Context(), time.Second); err != nil || n != 3 || done {
		t.Errorf("the preparation: %d, %t, %v", n, done, err)
	}
	r.wantAppend(r.batch(plain, 1), 2)
	s.convert = func() {
		if r.part() != nil {
			t.Error("it is led meanwhile")
		}
		if _, err := p.Convert(t.Context()); !errors.Is(err, store.ErrClosed) {
			t.Errorf("a second conversion meanwhile: %v", err)
		}
		if _, _, err := p.PrepareConversion(t.Context(), time.Second); !errors.Is(err, store.ErrClosed) {
			t.Errorf("a preparation meanwhile: %v", err)
		}
	}
	if done, err := p.Convert(t.Context()); !done || err != nil {
		t.Errorf("the conversion: %t, %v", done, err)
	}
	if r.part() != nil {
		t.Error("it is led before the epoch is raised")
	}
	r.raising()
	r.leader(1)
	r.wantAppend(r.batch(plain, 1), 3)
	if layout := r.part().Layout(); layout != store.LayoutIndexed {
		t.Errorf("it is in layout %s", layout)
	}
	if done, err := r.part().Convert(t.Context()); done || err != nil {
		t.Errorf("to convert it again: %t, %v", done, err)
	}
	if n, done, err := r.part().PrepareConversion(t.Context(), time.Second); n != 0 || !done || err != nil {
		t.Errorf("to prepare it again: %d, %t, %v", n, done, err)
	}
	if want := []string{"preview", "prepare", "convert"}; !slices.Equal(s.did, want) {
		t.Errorf("%q", s.did)
	}
}

// No one knows what a conversion that failed has left, so that the log is opened anew.
func TestAPartitionWhoseConversionFailsIsLedUnderAHigherEpoch(t *testing.T) {
	s := &convertingStore{Store: mem.New(), layout: store.LayoutStream, err: errors.New("the store is away")}
	r := newRig(t, s, nil)
	r.raising()
	if done, err := r.part().Convert(t.Context()); done || !errors.Is(err, s.err) {
		t.Errorf("%t, %v", done, err)
	}
	r.leader(1)
	r.wantAppend(r.batch(plain, 1), 0)
}

func TestWhatHasNoOtherLayoutIsNotConverted(t *testing.T) {
	for _, layout := range []store.Layout{"", "shared"} {
		s := &laidStore{mem.New(), layout}
		r := newRig(t, s, nil)
		if done, err := r.part().Convert(t.Context()); done || !errors.Is(err, ErrLayout) {
			t.Errorf("layout %q: %t, %v", layout, done, err)
		}
		r.wantAppend(r.batch(plain, 1), 0)
	}
}

// laidStore is a store whose logs say a layout, and cannot be converted.
type laidStore struct {
	store.Store
	layout store.Layout
}

func (s *laidStore) Open(ctx context.Context, tp store.TopicPartition, epoch int32, cfg store.LogConfig) (store.Log, error) {
	l, err := s.Store.Open(ctx, tp, epoch, cfg)
	if s.layout == "" || err != nil {
		return l, err
	}
	return laidLog{l, &convertingStore{layout: s.layout}}, nil
}
