package keystore

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
)

// Protocol is what TLS may be on a listener.
type Protocol struct {
	Min, Max uint16
	Suites   []uint16 // of TLS 1.2; nil for those that Go prefers
	Insecure []string // those of the suites that are known to be weak
}

// Apply sets them.
func (p Protocol) Apply(cfg *tls.Config) *tls.Config {
	cfg.MinVersion, cfg.MaxVersion, cfg.CipherSuites = p.Min, p.Max, p.Suites
	return cfg
}

var versions = map[string]uint16{"TLSv1.2": tls.VersionTLS12, "TLSv1.3": tls.VersionTLS13}

// ParseProtocol reads ssl.enabled.protocols, ssl.protocol and ssl.cipher.suites. The second
// is the newest version in Java, where it may also be TLS for any.
func ParseProtocol(enabled []string, newest string, suites []string) (Protocol, error) {
	p := Protocol{Min: tls.VersionTLS13, Max: tls.VersionTLS12}
	for _, name := range enabled {
		v, ok := versions[name]
		if !ok {
			return p, fmt.Errorf("ssl.enabled.protocols: %s is not supported; TLSv1.2 and TLSv1.3 are", name)
		}
		p.Min, p.Max = min(p.Min, v), max(p.Max, v)
	}
	if len(enabled) == 0 {
		p.Min, p.Max = tls.VersionTLS12, tls.VersionTLS13
	}
	switch v, ok := versions[newest]; {
	case ok:
		p.Max = min(p.Max, v)
	case newest != "" && newest != "TLS":
		return p, fmt.Errorf("ssl.protocol: %s is not supported; TLS, TLSv1.2 and TLSv1.3 are", newest)
	}
	if p.Min > p.Max {
		return p, fmt.Errorf("ssl.enabled.protocols has nothing that ssl.protocol=%s allows", newest)
	}
	if len(suites) == 0 {
		return p, nil
	}
	return p.limited(suites)
}

// limited takes only some cipher suites. A version of which none is named is not spoken, as
// in Java.
func (p Protocol) limited(names []string) (Protocol, error) {
	var newer []string
	p.Suites = []uint16{}
	for _, name := range names {
		suite, insecure := suiteNamed(name)
		switch {
		case suite == nil:
			return p, fmt.Errorf("ssl.cipher.suites: %s is not supported; supported are %s", name, strings.Join(secureSuites(), ", "))
		case isNewer(suite):
			newer = append(newer, name)
			continue
		case insecure:
			p.Insecure = append(p.Insecure, name)
		}
		p.Suites = append(p.Suites, suite.ID)
	}
	if all := newerSuites(); len(newer) > 0 && p.Max == tls.VersionTLS13 {
		for _, name := range all {
			if !slices.Contains(newer, name) {
				return p, fmt.Errorf("ssl.cipher.suites: the suites of TLS 1.3 cannot be enabled one by one; add %s, or leave them all out to serve TLS 1.2 only", name)
			}
		}
	}
	if len(newer) == 0 {
		p.Max = tls.VersionTLS12
	}
	if len(p.Suites) == 0 {
		p.Min, p.Suites = tls.VersionTLS13, nil
	}
	if p.Min > p.Max {
		return p, fmt.Errorf("ssl.cipher.suites has none of the versions that ssl.enabled.protocols and ssl.protocol allow")
	}
	return p, nil
}

func suiteNamed(name string) (suite *tls.CipherSuite, insecure bool) {
	for _, s := range tls.CipherSuites() {
		if s.Name == name {
			return s, false
		}
	}
	for _, s := range tls.InsecureCipherSuites() {
		if s.Name == name {
			return s, true
		}
	}
	return nil, false
}

func isNewer(s *tls.CipherSuite) bool { return slices.Contains(s.SupportedVersions, tls.VersionTLS13) }

func newerSuites() (names []string) {
	for _, s := range tls.CipherSuites() {
		if isNewer(s) {
			names = append(names, s.Name)
		}
	}
	return names
}

func secureSuites() (names []string) {
	for _, s := range tls.CipherSuites() {
		names = append(names, s.Name)
	}
	return names
}
