package cli

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
	UserEnv          = "MUSTER_USER"
	PasswordFileEnv  = "MUSTER_PASSWORD_FILE"
	CommandConfigEnv = "MUSTER_COMMAND_CONFIG"
	TLSCAEnv         = "MUSTER_TLS_CA"
)

// The mechanisms by which commands log in.
const (
	mechanismPlain    = "PLAIN"
	MechanismScram256 = "SCRAM-SHA-256"
	MechanismScram512 = "SCRAM-SHA-512"
)

// LoginFlags say who a command is to the broker, and whom it takes for the broker.
type LoginFlags struct {
	commandConfig string
	user          string
	passwordFile  string
	mechanism     string
	tls           bool
	ca, cert      string

	// given says whether a flag was given.
	given func(flag string) bool
	// Terminal is where a password is asked for, nil if there is none.
	Terminal *os.File

	known   *Identity // Once it is.
	brokers string    // That the file names.
}

// add defines the flags on a command. There is none for the password itself: command
// lines are seen by everyone on the machine, and kept by shells.
func (l *LoginFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&l.commandConfig, "command-config", "", "`file` with the properties of a Kafka client that say how to log in, as Kafka's tools take it; also from $"+CommandConfigEnv)
	f.StringVar(&l.user, "user", "", "log in as the user of that `name`; also from $"+UserEnv)
	f.StringVar(&l.passwordFile, "password-file", "", "`file` with the password; also from $"+PasswordFileEnv+"; without it a terminal is asked")
	f.StringVar(&l.mechanism, "sasl-mechanism", "", "log in by PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512 (default SCRAM-SHA-256)")
	f.BoolVar(&l.tls, "tls", false, "connect by TLS")
	f.StringVar(&l.ca, "tls-ca", "", "PEM `file` with the certificates to trust, for --tls; also from $"+TLSCAEnv)
	f.StringVar(&l.cert, "tls-cert", "", "PEM `file` with a certificate and its private key, to log in by, for --tls")
	CompleteValues(cmd, "sasl-mechanism", MechanismScram256, MechanismScram512, mechanismPlain)
	l.given = f.Changed
	// They are no defaults of the flags, which the help would show.
	l.commandConfig, l.user, l.passwordFile, l.ca = os.Getenv(CommandConfigEnv), os.Getenv(UserEnv), os.Getenv(PasswordFileEnv), os.Getenv(TLSCAEnv)
}

// Identity is what a connection needs to know: nothing, if the broker asks nothing.
type Identity struct {
	mechanism, User, Password string
	TLS                       *tls.Config // nil for none
}

// options returns the options of a client that logs in as the flags say, and the
// brokers that the file names.
func (l *LoginFlags) options() (opts []kgo.Opt, brokers string, err error) {
	id, brokers, err := l.Identity()
	if err != nil {
		return nil, "", err
	}
	opts, err = id.options()
	return opts, brokers, err
}

// Identity returns who a command is as the flags say, and the brokers that the file names.
// A password is asked for once.
func (l *LoginFlags) Identity() (id *Identity, brokers string, err error) {
	if l.known != nil {
		return l.known, l.brokers, nil
	}
	id = &Identity{}
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
func (l *LoginFlags) apply(id *Identity) error {
	if l.tls || l.ca != "" || l.cert != "" {
		made, err := clientTLS(l.ca, l.cert, true)
		if err != nil {
			return err
		}
		id.TLS = made
	}
	if l.mechanism != "" {
		id.mechanism = strings.ToUpper(l.mechanism)
	}
	if l.user == "" {
		switch {
		case l.given == nil || !l.given("password-file"):
			return nil
		case id.User == "":
			return Usagef("--password-file needs --user")
		}
		l.user = id.User // The password is that of the file's user.
	}
	password, err := l.password()
	if err != nil {
		return err
	}
	id.User, id.Password = l.user, password
	if id.mechanism == "" {
		id.mechanism = MechanismScram256
	}
	return nil
}

// password reads the password of the user that logs in.
func (l *LoginFlags) password() (string, error) {
	if l.passwordFile != "" {
		return ReadSecretFile(l.passwordFile)
	}
	if l.Terminal == nil {
		return "", Usagef("--user needs a password: name the file that holds it with --password-file; there is no terminal to ask at")
	}
	return AskPassword(l.Terminal, os.Stderr, "Password of "+l.user+": ")
}

// AskPassword asks at a terminal, which shows nothing of what is typed.
func AskPassword(terminal *os.File, out io.Writer, question string) (string, error) {
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
func (id *Identity) options() ([]kgo.Opt, error) {
	var opts []kgo.Opt
	if id.TLS != nil {
		opts = append(opts, kgo.DialTLSConfig(id.TLS))
	}
	if id.User == "" {
		if id.mechanism != "" {
			return nil, Usagef("--sasl-mechanism needs --user")
		}
		return opts, nil
	}
	switch id.mechanism {
	case mechanismPlain:
		opts = append(opts, kgo.SASL(saslplain.Auth{User: id.User, Pass: id.Password}.AsMechanism()))
	case MechanismScram256:
		opts = append(opts, kgo.SASL(scram.Auth{User: id.User, Pass: id.Password}.AsSha256Mechanism()))
	case MechanismScram512:
		opts = append(opts, kgo.SASL(scram.Auth{User: id.User, Pass: id.Password}.AsSha512Mechanism()))
	default:
		return nil, Usagef("commands log in by %s, %s or %s, not by %q", mechanismPlain, MechanismScram256, MechanismScram512, id.mechanism)
	}
	return opts, nil
}

// MaxSecretFile bounds what is read as a password: a file named by mistake fails soon.
const MaxSecretFile = 64 << 10

// ReadSecretFile returns what is in a file, without the end of its last line.
func ReadSecretFile(name string) (string, error) {
	text, err := os.ReadFile(name)
	switch {
	case err != nil:
		return "", fmt.Errorf("the password cannot be read: %w", err)
	case len(text) > MaxSecretFile:
		return "", fmt.Errorf("%s has more than %d bytes; that is no password", name, MaxSecretFile)
	}
	secret := TrimLine(string(text))
	if secret == "" {
		return "", fmt.Errorf("%s is empty; it should hold a password", name)
	}
	return secret, nil
}

// TrimLine drops the end of a last line, which editors and echo put there unasked.
func TrimLine(text string) string {
	return strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
}

// Lookups find what ${env:NAME} and ${file:/path} stand for.
var Lookups = map[string]config.Lookup{
	"env": func(name string) (string, error) {
		value, ok := os.LookupEnv(name)
		if !ok {
			return "", errors.New("there is no such variable")
		}
		return value, nil
	},
	"file": ReadSecretFile,
}

// readClientProperties reads a file of properties.
func readClientProperties(name string) (map[string]string, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	props, err := config.ParseProperties(bytes.NewReader(text))
	if err == nil {
		props, err = config.Resolve(props, Lookups)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return props, nil
}
