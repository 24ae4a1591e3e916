package main

import (
	"strings"
	"testing"

	"muster/cmd/muster/internal/cli"
)

const jaas = `org.apache.kafka.common.security.scram.ScramLoginModule required username="admin" password="top secret";`

func TestCommandsLogInByAFileOfProperties(t *testing.T) {
	s := newSecureShell(t)
	t.Setenv(cli.UserEnv, "")
	t.Setenv(cli.PasswordFileEnv, "")
	t.Setenv("ADMIN_PW", "top secret")
	plain := "org.apache.kafka.common.security.plain.PlainLoginModule required username=admin password='top secret';"
	for name, text := range map[string]string{
		"SCRAM":             "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\nsasl.jaas.config=" + jaas,
		"the module's":      "security.protocol=sasl_plaintext\nsasl.jaas.config=" + plain,
		"brokers":           "bootstrap.servers=" + s.broker + "\nsecurity.protocol=SASL_PLAINTEXT\nsasl.jaas.config=" + jaas,
		"another's secrets": "security.protocol=SASL_PLAINTEXT\nsasl.jaas.config=" + strings.Replace(jaas, "top secret", "${env:ADMIN_PW}", 1),
	} {
		in := s
		if name == "brokers" {
			in = &shell{t: t}
		}
		if r := in.run("users", "list", "--command-config", file(t, "client.properties", text)); r.code != exitOK {
			t.Errorf("%s: %s", name, r.err)
		}
	}
	t.Setenv(cli.CommandConfigEnv, file(t, "client.properties", "security.protocol=SASL_PLAINTEXT\nsasl.jaas.config="+jaas))
	s.run("users", "list").ok()
	t.Setenv(cli.CommandConfigEnv, "")
	s.run("users", "list").fails(exitFailed, "no broker answers", "--user")
}

func TestPropertiesThatMakeNoLoginAreRefusedWithoutRepeatingThem(t *testing.T) {
	s := &shell{t, "127.0.0.1:1"}
	for text, want := range map[string]string{
		"security.protocol=x": "security.protocol is PLAINTEXT, SSL",
		"security.protocol=SASL_SSL\nssl.truststore.type=JKS":                                                       "muster reads PEM only",
		"security.protocol=SSL\nssl.key.password=hidden":                                                            "under a password",
		"security.protocol=SSL\nssl.truststore.location=/none":                                                      "/none",
		"security.protocol=SASL_PLAINTEXT":                                                                          "sasl.jaas.config is missing",
		"security.protocol=SASL_PLAINTEXT\nsasl.jaas.config=hidden":                                                 "sasl.jaas.config",
		"security.protocol=SASL_PLAINTEXT\nsasl.jaas.config=a.B required password=hidden;":                          "needs username and password",
		"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\nsasl.jaas.config=" + jaas:                         `not by "GSSAPI"`,
		"security.protocol=SASL_PLAINTEXT\nsasl.jaas.config=a.B required username=a password=\"${env:NOT_THERE}\";": "there is no such variable",
	} {
		r := s.run("topics", "list", "--command-config", file(t, "client.properties", text))
		if r.code == exitOK || !strings.Contains(r.err, want) || strings.Contains(r.err, "hidden") || strings.Contains(r.err, "top secret") {
			t.Errorf("%s: exit code %d, %s", text, r.code, r.err)
		}
	}
	s.run("topics", "list", "--command-config", "/none").fails(exitFailed, "/none")
	s.run("topics", "list", "--user", "a", "--password-file", "/none").fails(exitFailed, "/none")
	s.run("topics", "list", "--user", "a", "--password-file", file(t, "pw", "\n")).fails(exitFailed, "is empty")
	s.run("topics", "list", "--tls-ca", file(t, "ca.pem", "nothing")).fails(exitFailed, "holds no certificate")
	s.run("topics", "list", "--tls-cert", file(t, "cert.pem", "nothing")).fails(exitFailed, "needs a certificate and its private key")
}
