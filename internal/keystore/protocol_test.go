package keystore

import (
	"crypto/tls"
	"slices"
	"strings"
	"testing"
)

func TestProtocolsAndSuitesHaveKafkasNames(t *testing.T) {
	const older, weak = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "TLS_RSA_WITH_AES_128_CBC_SHA"
	newer := []string{"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}
	both := []string{"TLSv1.2", "TLSv1.3"}
	for _, c := range []struct {
		enabled  []string
		newest   string
		suites   []string
		min, max uint16
		chosen   []uint16
		insecure []string
	}{
		{nil, "", nil, tls.VersionTLS12, tls.VersionTLS13, nil, nil},
		{both, "TLSv1.3", nil, tls.VersionTLS12, tls.VersionTLS13, nil, nil},
		{both, "TLS", nil, tls.VersionTLS12, tls.VersionTLS13, nil, nil},
		{both, "TLSv1.2", nil, tls.VersionTLS12, tls.VersionTLS12, nil, nil},
		{[]string{"TLSv1.2"}, "TLSv1.3", nil, tls.VersionTLS12, tls.VersionTLS12, nil, nil},
		{[]string{"TLSv1.3"}, "TLSv1.3", nil, tls.VersionTLS13, tls.VersionTLS13, nil, nil},
		{both, "", []string{older}, tls.VersionTLS12, tls.VersionTLS12, []uint16{tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384}, nil},
		{both, "", append([]string{older}, newer...), tls.VersionTLS12, tls.VersionTLS13, []uint16{tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384}, nil},
		{both, "", newer, tls.VersionTLS13, tls.VersionTLS13, nil, nil},
		{[]string{"TLSv1.2"}, "", []string{older, newer[1]}, tls.VersionTLS12, tls.VersionTLS12, []uint16{tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384}, nil},
		{both, "", []string{weak}, tls.VersionTLS12, tls.VersionTLS12, []uint16{tls.TLS_RSA_WITH_AES_128_CBC_SHA}, []string{weak}},
	} {
		p, err := ParseProtocol(c.enabled, c.newest, c.suites)
		if err != nil || p.Min != c.min || p.Max != c.max || !slices.Equal(p.Suites, c.chosen) || !slices.Equal(p.Insecure, c.insecure) {
			t.Errorf("%v, %q, %v: %+v, %v", c.enabled, c.newest, c.suites, p, err)
		}
		if cfg := p.Apply(&tls.Config{}); cfg.MinVersion != c.min || cfg.MaxVersion != c.max || !slices.Equal(cfg.CipherSuites, c.chosen) { // #nosec G402 -- what is set is what is tested.
			t.Errorf("%+v", cfg)
		}
	}
	for _, c := range []struct {
		enabled []string
		newest  string
		suites  []string
		want    string
	}{
		{[]string{"TLSv1.1", "TLSv1.2"}, "", nil, "TLSv1.1 is not supported"},
		{[]string{"SSLv3"}, "", nil, "SSLv3 is not supported"},
		{both, "SSL", nil, "ssl.protocol: SSL is not supported"},
		{[]string{"TLSv1.3"}, "TLSv1.2", nil, "ssl.enabled.protocols has nothing that ssl.protocol=TLSv1.2 allows"},
		{both, "", []string{"TLS_DHE_RSA_WITH_AES_256_GCM_SHA384"}, "TLS_DHE_RSA_WITH_AES_256_GCM_SHA384 is not supported"},
		{both, "", []string{"ECDHE-RSA-AES256-GCM-SHA384"}, "is not supported"},
		{both, "", []string{older, newer[0]}, "add TLS_AES_256_GCM_SHA384"},
		{[]string{"TLSv1.3"}, "", []string{older}, "ssl.cipher.suites has none of the versions"},
		{[]string{"TLSv1.2"}, "", newer, "ssl.cipher.suites has none of the versions"},
	} {
		if _, err := ParseProtocol(c.enabled, c.newest, c.suites); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, %q, %v: %v", c.enabled, c.newest, c.suites, err)
		}
	}
}
