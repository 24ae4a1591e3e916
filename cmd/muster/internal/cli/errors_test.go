package cli

import (
	"net"
	"testing"
)

func TestANameThatCannotBeResolvedIsToldWithoutTheResolver(t *testing.T) {
	for err, want := range map[string]string{
		"no such host": `the name "kafka" cannot be resolved: no such host`,
		"dial udp 10.0.0.1:53: connect: network is unreachable": `the name "kafka" cannot be resolved: network is unreachable`,
	} {
		if got := DialCause(&net.DNSError{Name: "kafka", Server: "10.0.0.1:53", Err: err}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
