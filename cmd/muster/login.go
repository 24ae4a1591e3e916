package main

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"
	saslplain "github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
	"golang.org/x/term"

	"muster/internal/metadata/config"
)

// Where the login comes from if no flag says so.
const (
	userEnv          = "MUSTER_USER"
	passwordFileEnv  = "MUSTER_PASSWORD_FILE"
	commandConfigEnv = "MUSTER_COMMAND_CONFIG"
	tlsCAEnv         = "MUSTER_TLS_CA"
)

// The mechanisms by which commands log in.
const (
	mechanismPlain    = "PLAIN"
	mechanismScram256 = "SCRAM-SHA-256"
	mechanismScram512 = "SCRAM-SHA-512"
)

// loginFlags say who a command is to the broker, and whom it takes for the broker.
type loginFlags struct {
	commandConfig string
	user          string
	passwordFile  string
	mechanism     string
	tls           bool
	ca, cert      string

	// given says whether a flag was given.
	given func(flag string) bool
	// terminal is where a password is asked for, nil if there is none.
	terminal *os.File

	known   *identity // Once it is.
	brokers string    // That the file names.
}

// add defines the flags on a command. There is none for the password itself: command
// lines are seen by everybody on the machine, and kept by shells.
func (l *loginFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&l.commandConfig, "command-config", "", "`file` with the properties of a Kafka client that say how to log in, as Kafka's tools take it; also from $"+commandConfigEnv)
	f.StringVar(&l.user, "user", "", "log in as the user of that `name`; also from $"+userEnv)
	f.StringVar(&l.passwordFile, "password-file", "", "`file` with the password; also from $"+passwordFileEnv+"; without it a terminal is asked")
	f.StringVar(&l.mechanism, "sasl-mechanism", "", "log in by PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512 (default SCRAM-SHA-256)")
	f.BoolVar(&l.tls, "tls", false, "connect by TLS")
	f.StringVar(&l.ca, "tls-ca", "", "PEM `file` with the certificates to trust, for --tls; also from $"+tlsCAEnv)
	f.StringVar(&l.cert, "tls-cert", "", "PEM `file` with a certificate and its private key, to log in by, for --tls")
	completeValues(cmd, "sasl-mechanism", mechanismScram256, mechanismScram512, mechanismPlain)
	l.given = f.Changed
	// They are no defaults of the flags, which the help would show.
	l.commandConfig, l.user, l.passwordFile, l.ca = os.Getenv(commandConfigEnv), os.Getenv(userEnv), os.Getenv(passwordFileEnv), os.Getenv(tlsCAEnv)
}

// identity is what a connection needs to know: nothing, if the broker asks nothing.
type identity struct {
	mechanism, user, password string
	tls                       *tls.Config // nil for none
}

// options returns the options of a client that logs in as the flags say, and the
// brokers that the file names.
func (l *loginFlags) options() (opts []kgo.Opt, brokers string, err error) {
	id, brokers, err := l.identity()
	if err != nil {
		return nil, "", err
	}
	opts, err = id.options()
	return opts, brokers, err
}

// identity returns who a command is as the flags say, and the brokers that the file names.
// A password is asked for once.
func (l *loginFlags) identity() (id *identity, brokers string, err error) {
	if l.known != nil {
		return l.known, l.brokers, nil
	}
	id = &identity{}
	if l.commandConfig != "" {
		props, err := readClientProperties(l.commandConfig)
		if err != nil {
			return nil, "", err
		}
		brokers = props["bootstrap.servers"]
		if id, err = identityOf(props); err != nil {
			return nil, "", fmt.Errorf("%s: %w", l.commandConfig, err)
		}
	}
	if err := l.apply(id); err != nil {
		return nil, "", err
	}
	l.known, l.brokers = id, brokers
	return id, brokers, nil
}

// apply lets the flags override what a file says.
func (l *loginFlags) apply(id *identity) error {
	if l.tls || l.ca != "" || l.cert != "" {
		made, err := clientTLS(l.ca, l.cert, true)
		if err != nil {
			return err
		}
		id.tls = made
	}
	if l.mechanism != "" {
		id.mechanism = strings.ToUpper(l.mechanism)
	}
	if l.user == "" {
		if id.user == "" && l.given != nil && l.given("password-file") {
			return usagef("--password-file needs --user")
		}
		return nil
	}
	password, err := l.password()
	if err != nil {
		return err
	}
	id.user, id.password = l.user, password
	if id.mechanism == "" {
		id.mechanism = mechanismScram256
	}
	return nil
}

// password reads the password of the user that logs in.
func (l *loginFlags) password() (string, error) {
	if l.passwordFile != "" {
		return readSecretFile(l.passwordFile)
	}
	if l.terminal == nil {
		return "", usagef("--user needs a password: name the file that holds it with --password-file; there is no terminal to ask at")
	}
	return askPassword(l.terminal, os.Stderr, "Password of "+l.user+": ")
}

// askPassword asks at a terminal, which shows nothing of what is typed.
func askPassword(terminal *os.File, out io.Writer, question string) (string, error) {
	fmt.Fprint(out, question)
	typed, err := term.ReadPassword(int(terminal.Fd()))
	fmt.Fprintln(out)
	if err != nil {
		return "", fmt.Errorf("no password: %w", err)
	}
	if len(typed) == 0 {
		return "", errors.New("the password is empty")
	}
	return string(typed), nil
}

// options makes options of the client library.
func (id *identity) options() ([]kgo.Opt, error) {
	var opts []kgo.Opt
	if id.tls != nil {
		opts = append(opts, kgo.DialTLSConfig(id.tls))
	}
	if id.user == "" {
		if id.mechanism != "" {
			return nil, usagef("--sasl-mechanism needs --user")
		}
		return opts, nil
	}
	switch id.mechanism {
	case mechanismPlain:
		opts = append(opts, kgo.SASL(saslplain.Auth{User: id.user, Pass: id.password}.AsMechanism()))
	case mechanismScram256:
		opts = append(opts, kgo.SASL(scram.Auth{User: id.user, Pass: id.password}.AsSha256Mechanism()))
	case mechanismScram512:
		opts = append(opts, kgo.SASL(scram.Auth{User: id.user, Pass: id.password}.AsSha512Mechanism()))
	default:
		return nil, usagef("commands log in by %s, %s or %s, not by %q", mechanismPlain, mechanismScram256, mechanismScram512, id.mechanism)
	}
	return opts, nil
}

// maxSecretFile bounds what is read as a password: a file named by mistake fails soon.
const maxSecretFile = 64 << 10

// readSecretFile returns what is in a file, without the end of its last line.
func readSecretFile(name string) (string, error) {
	text, err := os.ReadFile(name)
	switch {
	case err != nil:
		return "", fmt.Errorf("the password cannot be read: %w", err)
	case len(text) > maxSecretFile:
		return "", fmt.Errorf("%s has more than %d bytes; that is no password", name, maxSecretFile)
	}
	secret := trimLine(string(text))
	if secret == "" {
		return "", fmt.Errorf("%s is empty; it should hold a password", name)
	}
	return secret, nil
}

// trimLine drops the end of a last line, which editors and echo put there unasked.
func trimLine(text string) string {
	return strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
}

// lookups find what ${env:NAME} and ${file:/path} stand for.
var lookups = map[string]config.Lookup{
	"env": func(name string) (string, error) {
		value, ok := os.LookupEnv(name)
		if !ok {
			return "", errors.New("there is no such variable")
		}
		return value, nil
	},
	"file": readSecretFile,
}

// readClientProperties reads a file of properties.
func readClientProperties(name string) (map[string]string, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	props, err := config.ParseProperties(bytes.NewReader(text))
	if err == nil {
		props, err = config.Resolve(props, lookups)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return props, nil
}
