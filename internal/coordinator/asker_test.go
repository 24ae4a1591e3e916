package coordinator

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/machine"
	"muster/internal/metadata"
)

// noted is a core that notes who asks it something, and does what another does.
type noted struct {
	machine.Core
	by *[]metadata.Asker
}

func (n noted) Step(in machine.Input) machine.Effects {
	if r, ok := in.Event.(machine.Request); ok {
		*n.by = append(*n.by, r.Asker)
	}
	return n.Core.Step(in)
}

func TestACoreIsToldWhoAsks(t *testing.T) {
	var by []metadata.Asker
	o := options(t, &gatedLog{})
	inner := o.Core.New
	o.Core.New = func() machine.Core { return noted{inner(), &by} }
	c := New(o)
	defer c.Close()
	c.Lead([]int32{0})
	ann := Client{ID: "c", Host: "/10.0.0.1", Asker: metadata.Asker{Principal: "User:ann", Host: "10.0.0.1"}}
	for len(by) == 0 { // Until it has loaded.
		c.Do(t.Context(), "g", ann, &kmsg.OffsetFetchRequest{Version: 8})
	}
	if by[0] != ann.Asker {
		t.Errorf("a request comes from %+v", by[0])
	}
}
