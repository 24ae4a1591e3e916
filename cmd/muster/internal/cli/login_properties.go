package cli

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"muster/internal/auth/sasl"
)

// identityOf reads the properties of a Kafka client that are about security. Others say
// nothing about who the user is.
func identityOf(props map[string]string) (*Identity, error) {
	id := &Identity{}
	protocol := strings.ToUpper(props["security.protocol"])
	if protocol == "" {
		protocol = "PLAINTEXT"
	}
	if !slices.Contains([]string{"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}, protocol) {
		return nil, fmt.Errorf("security.protocol is PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL, not %q", props["security.protocol"])
	}
	if strings.HasSuffix(protocol, "SSL") {
		var err error
		if id.TLS, err = tlsOf(props); err != nil {
			return nil, err
		}
	}
	if strings.HasPrefix(protocol, "SASL") {
		if err := id.login(props); err != nil {
			return nil, err
		}
	}
	return id, nil
}

// login reads who logs in from the JAAS line. Kafka's default for the mechanism is
// Kerberos, which muster does not have; so the module of the line says which it is.
func (id *Identity) login(props map[string]string) error {
	line := props["sasl.jaas.config"]
	if line == "" {
		return errors.New("sasl.jaas.config is missing; it says who logs in")
	}
	modules, err := sasl.ParseJAAS(line)
	if err != nil {
		return fmt.Errorf("sasl.jaas.config: %w", err)
	}
	if len(modules) != 1 {
		return fmt.Errorf("sasl.jaas.config has %d login modules, not one", len(modules))
	}
	m := modules[0]
	id.User, id.Password = m.Options["username"], m.Options["password"]
	if id.User == "" || id.Password == "" {
		return errors.New("sasl.jaas.config needs username and password")
	}
	id.mechanism = strings.ToUpper(props["sasl.mechanism"])
	switch {
	case id.mechanism != "":
	case strings.HasSuffix(m.Name, ".PlainLoginModule"):
		id.mechanism = mechanismPlain
	default:
		id.mechanism = MechanismScram256
	}
	return nil
}

func tlsOf(props map[string]string) (*tls.Config, error) {
	for _, name := range []string{"ssl.truststore.type", "ssl.keystore.type"} {
		if kind := props[name]; kind != "" && !strings.EqualFold(kind, "PEM") {
			return nil, fmt.Errorf("%s is %s; muster reads PEM only: keytool and openssl pkcs12 turn one into the other", name, kind)
		}
	}
	if props["ssl.key.password"] != "" || props["ssl.keystore.password"] != "" {
		return nil, errors.New("muster reads no private keys under a password; openssl pkey takes it off")
	}
	// Kafka's clients compare names unless that is set to nothing.
	algorithm, given := props["ssl.endpoint.identification.algorithm"]
	return clientTLS(props["ssl.truststore.location"], props["ssl.keystore.location"], !given || algorithm != "")
}

// clientTLS makes a configuration that trusts the certificates of a file, or those of
// the system, and shows a certificate of its own, if there is one.
func clientTLS(caFile, certFile string, checkName bool) (*tls.Config, error) {
	out := &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile != "" {
		text, err := os.ReadFile(caFile)
		if err != nil {
			return nil, fmt.Errorf("the certificates to trust cannot be read: %w", err)
		}
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s holds no certificate in PEM", caFile)
		}
	}
	if certFile != "" {
		pair, err := tls.LoadX509KeyPair(certFile, certFile)
		if err != nil {
			return nil, fmt.Errorf("%s needs a certificate and its private key in PEM: %w", certFile, err)
		}
		out.Certificates = []tls.Certificate{pair}
	}
	if !checkName {
		anyName(out)
	}
	return out, nil
}

// anyName has a broker's certificate be checked for who signed it, and not for the name
// in it.
func anyName(c *tls.Config) {
	c.InsecureSkipVerify = true // The chain is verified below.
	roots := c.RootCAs
	c.VerifyConnection = func(s tls.ConnectionState) error {
		opts := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
		for _, cert := range s.PeerCertificates[1:] {
			opts.Intermediates.AddCert(cert)
		}
		_, err := s.PeerCertificates[0].Verify(opts)
		return err
	}
}
