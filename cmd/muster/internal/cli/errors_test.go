package cli

import (
	"net"
	"testing"

	"muster/internal/assert"
)

func TestANameThatCannotBeResolvedIsToldWithoutTheResolver(t *testing.T) {
	for err, want := range map[string]string{
		"no such host": `the name "kafka" cannot be resolved: no such host`,
		"dial udp 10.0.0.1:53: connect: network is unreachable": `the name "kafka" cannot be resolved: network is unreachable`,
	} {
		assert.Equal(t, DialCause(&net.DNSError{Name: "kafka", Server: "10.0.0.1:53", Err: err}), want)
	}
}
