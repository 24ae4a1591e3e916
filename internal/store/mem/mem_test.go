package mem

import (
	"testing"

	"muster/internal/store/storetest"
)

func open(t *testing.T) storetest.Harness {
	s := New()
	t.Cleanup(func() { s.Close() })
	return storetest.Harness{Store: s}
}

func TestContract(t *testing.T) { storetest.Run(t, open) }

func TestSameAsItself(t *testing.T) { storetest.Metamorphic(t, open, open, 1) }
