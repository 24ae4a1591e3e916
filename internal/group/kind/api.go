package kind

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/machine"
)

// API is a request that clients send about groups: a line in the table of its kind.
type API struct {
	Key kmsg.Key
	// Serve handles one.
	Serve func(x *Step, r *machine.Request)
	// Fail fills in the answer that tells a client of an error which is not about its request
	// but about the coordinator; 0 makes it a success.
	Fail func(req kmsg.Request, resp kmsg.Response, code int16)
	// Random says whether one may need random bytes, of which the id of a member that joins
	// is made; nil is never. Everything else, heartbeats above all, is spared the cost of them.
	Random func(req kmsg.Request) bool
	// Patient says that it is a success while groups are loaded: no member is to be troubled.
	Patient bool
}

// Serves is an API whose requests are of a type, and so are their answers. Who has serve be nil
// handles them otherwise.
func Serves[Req kmsg.Request, Resp kmsg.Response](serve func(*Step, *machine.Request, Req), fail func(Req, Resp, int16)) API {
	var req Req
	a := API{Key: kmsg.Key(req.Key())}
	if serve != nil {
		a.Serve = func(x *Step, r *machine.Request) { serve(x, r, r.Msg.(Req)) }
	}
	a.Fail = func(req kmsg.Request, resp kmsg.Response, code int16) { fail(req.(Req), resp.(Resp), code) }
	return a
}
