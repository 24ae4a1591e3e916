package gate

import (
	"slices"

	"muster/internal/meter"
)

// The results of logins in the metrics.
const (
	Succeeded   = "success"
	LoginFailed = "failure"
)

// Count has all gates count logins. Brokers of the cluster are not counted, unless they
// fail. Those that can happen are known from the start, so that the first one is seen as a
// change.
func (b *Gates) Count(logins *meter.Vector) {
	for _, g := range b.all {
		mechanisms := g.mechanisms
		if g.mapping != nil {
			mechanisms = []string{byCertificate}
		}
		for _, m := range mechanisms {
			logins.Add(meter.Labels{g.name, m, Succeeded}, 0)
			logins.Add(meter.Labels{g.name, m, LoginFailed}, 0)
		}
		g.OnLogin(func(a Attempt) {
			if a.Mechanism == PeerMechanism && a.Err == nil {
				return
			}
			result := Succeeded
			if a.Err != nil {
				result = LoginFailed
			}
			mechanism := "other" // Clients may ask for any name.
			if a.Mechanism == PeerMechanism || slices.Contains(mechanisms, a.Mechanism) {
				mechanism = a.Mechanism
			}
			logins.Add(meter.Labels{a.Listener, mechanism, result}, 1)
		})
	}
}
