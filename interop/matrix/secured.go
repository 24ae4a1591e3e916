package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"muster/internal/logintest"
)

// secured is a broker where clients log in and rules say what each may do. Rows learn of it
// by environment variables:
//
//	MUSTER_MATRIX_SASL_PLAINTEXT  addresses of its listeners
//	MUSTER_MATRIX_SASL_SSL
//	MUSTER_MATRIX_SSL             where clients show a certificate
//	MUSTER_MATRIX_SHORT           as SASL_PLAINTEXT, but a login lasts for 4 seconds
//	MUSTER_MATRIX_CA              the certificate of the authority that clients trust
//	MUSTER_MATRIX_CERTIFICATE     key and certificate of the user carol, both in one file
//	MUSTER_MATRIX_STRANGER        those of another carol, by an authority that nobody trusts
//	MUSTER_MATRIX_TOKENS          where tokens are given out (issuer.go)
//
// All files are PEM. The mechanisms are PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER.
// The user admin, whose password is admin-secret, may do everything; rows make the users and
// rules that they need, under names of their own.
type secured struct {
	*broker
	files  map[string]string // by the name of the variable
	issuer *issuer
}

// securedListeners are those of a secured broker, by their protocols.
var securedListeners = map[string]string{"SASL_PLAINTEXT": "SASL_PLAINTEXT", "SASL_SSL": "SASL_SSL", "SSL": "SSL", "SHORT": "SASL_PLAINTEXT"}

// startSecured starts a secured broker, with its files in a folder that it makes.
func startSecured(ctx context.Context, store, dir string) (*secured, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	s := &secured{files: map[string]string{}}
	server, err := s.writeCertificates(dir)
	if err != nil {
		return nil, err
	}
	if s.issuer, err = startIssuer(); err != nil {
		return nil, err
	}
	settings := filepath.Join(dir, "server.properties")
	if err = os.WriteFile(settings, []byte(s.settings(server)), 0o600); err == nil {
		s.broker, err = launch(ctx, store, dir, len(securedListeners), "--config", settings)
	}
	if err != nil {
		s.issuer.stop()
		return nil, err
	}
	return s, nil
}

// settings are those of the broker, whose key and certificate are in a file.
func (s *secured) settings(server string) string {
	var listeners, protocols []string
	for name, protocol := range securedListeners {
		listeners = append(listeners, name+"://127.0.0.1:0")
		protocols = append(protocols, name+":"+protocol)
	}
	lines := []string{
		"listeners=" + strings.Join(listeners, ","),
		"listener.security.protocol.map=" + strings.Join(protocols, ","),
		"ssl.keystore.location=" + server,
		"ssl.truststore.location=" + s.files["CA"],
		"listener.name.ssl.ssl.client.auth=required",
		`listener.name.ssl.ssl.principal.mapping.rules=RULE:^CN=([^,]+),O=Muster$/$1/L,DEFAULT`,
		"sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
		"listener.name.short.connections.max.reauth.ms=4000",
		"sasl.oauthbearer.jwks.endpoint.url=" + s.issuer.url + "/keys",
		"sasl.oauthbearer.expected.issuer=" + s.issuer.url,
		"sasl.oauthbearer.expected.audience=muster",
		"sasl.oauthbearer.clock.skew.seconds=0",
		"authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"muster.bootstrap.user=admin:admin-secret",
	}
	return strings.Join(lines, "\n") + "\n"
}

// writeCertificates writes the files with keys and certificates, and returns that of the
// broker, which no client needs.
func (s *secured) writeCertificates(dir string) (string, error) {
	server := filepath.Join(dir, "server.pem")
	for _, name := range []string{"CA", "CERTIFICATE", "STRANGER"} {
		s.files[name] = filepath.Join(dir, strings.ToLower(name)+".pem")
	}
	trusted, err := logintest.NewAuthority()
	if err != nil {
		return "", err
	}
	stranger, err := logintest.NewAuthority()
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(s.files["CA"], trusted.PEM(), 0o600); err != nil {
		return "", err
	}
	for file, by := range map[string]*logintest.Authority{server: trusted, s.files["CERTIFICATE"]: trusted, s.files["STRANGER"]: stranger} {
		name := "Carol"
		if file == server {
			name = "broker"
		}
		text, err := by.IssuePEM(name)
		if err == nil {
			err = os.WriteFile(file, text, 0o600)
		}
		if err != nil {
			return "", fmt.Errorf("a certificate for %s: %w", name, err)
		}
	}
	return server, nil
}

// env tells rows of the broker.
func (s *secured) env() []string {
	env := []string{"MUSTER_MATRIX_TOKENS=" + s.issuer.url + "/token"}
	for name, file := range s.files {
		env = append(env, "MUSTER_MATRIX_"+name+"="+file)
	}
	for name, addr := range s.addrs {
		env = append(env, "MUSTER_MATRIX_"+name+"="+addr)
	}
	return env
}

func (s *secured) stop() {
	s.broker.stop()
	s.issuer.stop()
}
