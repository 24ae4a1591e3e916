// Package cli is what all commands share: the flags by which they reach a broker and log in,
// tables and JSON, completion in shells, and errors in words, with hints.
//
// It knows no command.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/term"
)

const (
	DefaultBroker = "127.0.0.1:9092"
	BrokerEnv     = "MUSTER_BROKER"

	// ConnectTimeout is how long a command looks for a broker before it says
	// that there is none.
	ConnectTimeout = 5 * time.Second
	// RequestTimeout bounds a request together with its retries.
	RequestTimeout = 10 * time.Second
)

// Flags are the flags of every command that talks to a broker.
type Flags struct {
	Brokers []string
	JSON    bool
	wait    time.Duration
	Login   LoginFlags
	// named says that the user has named the brokers, which a file does not override.
	named func() bool
}

// Add defines the flags on a command. jsonUsage says what --json does there.
func (f *Flags) Add(cmd *cobra.Command, jsonUsage string) {
	brokers := []string{DefaultBroker}
	if env := os.Getenv(BrokerEnv); env != "" {
		brokers = strings.Split(env, ",")
	}
	cmd.Flags().StringSliceVarP(&f.Brokers, "broker", "b", brokers, "broker to connect to, `host:port`; more than one with commas; also from $"+BrokerEnv)
	cmd.Flags().DurationVar(&f.wait, "wait", 0, "how long to wait for a broker that is still starting, as 30s; by default not at all")
	cmd.Flags().BoolVar(&f.JSON, "json", false, jsonUsage)
	f.Login.add(cmd)
	f.named = func() bool { return cmd.Flags().Changed("broker") || os.Getenv(BrokerEnv) != "" }
}

// Connect returns a client once a broker has answered.
func (f *Flags) Connect(ctx context.Context, opts ...kgo.Opt) (*kgo.Client, error) {
	if h, ok := ctx.Value(hintsKey{}).(*Hints); ok {
		h.flags = f
	}
	if IsTerminal(os.Stdin) {
		f.Login.Terminal = os.Stdin
	}
	login, brokers, err := f.Login.options()
	if err != nil {
		return nil, err
	}
	if brokers != "" && !f.named() {
		f.Brokers = strings.Split(brokers, ",")
	}
	for i, b := range f.Brokers {
		f.Brokers[i] = strings.TrimSpace(b)
	}
	if len(f.Brokers) == 0 || slices.Contains(f.Brokers, "") {
		return nil, Usagef("--broker is empty; it takes host:port")
	}
	for _, b := range f.Brokers {
		if err := checkAddress(b); err != nil {
			return nil, err
		}
	}
	all := append([]kgo.Opt{
		kgo.SeedBrokers(f.Brokers...),
		kgo.ClientID("muster"),
		kgo.DialTimeout(ConnectTimeout),
		kgo.RequestTimeoutOverhead(ConnectTimeout),
		kgo.RetryTimeout(RequestTimeout),
		kgo.DisableClientMetrics(),
	}, append(login, opts...)...)
	client, err := kgo.NewClient(all...)
	if err != nil {
		return nil, Usagef("%s", err)
	}
	found, err := f.awaitBroker(ctx, client.SeedBrokers())
	if err == nil && len(f.Brokers) > 1 {
		err = client.UpdateSeedBrokers(f.Brokers[found]) // It tells the client of all others.
	}
	if err != nil {
		client.Close()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, f.connectError(err)
	}
	return client, nil
}

// checkAddress refuses what is no address of a broker. Without a port it is Kafka's.
func checkAddress(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		host, port = addr, "9092"
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || strings.ContainsAny(host, "/ ") {
		return Usagef("a broker's address is host:port, not %q", addr)
	}
	return nil
}

// retryBroker is how often a broker is looked for that is still starting.
const retryBroker = 200 * time.Millisecond

// awaitBroker is findBroker for as long as --wait says. A broker that answers and refuses
// is up: waiting would not help.
func (f *Flags) awaitBroker(ctx context.Context, brokers []*kgo.Broker) (found int, err error) {
	deadline := time.Now().Add(f.wait)
	for {
		found, err = findBroker(ctx, brokers)
		var code *kerr.Error
		if err == nil || errors.As(err, &code) || !time.Now().Before(deadline) {
			return found, err
		}
		select {
		case <-ctx.Done():
			return found, err
		case <-time.After(min(retryBroker, time.Until(deadline))):
		}
	}
}

// connectError says why no broker has answered.
func (f *Flags) connectError(err error) error {
	at := strings.Join(f.Brokers, ", ")
	var code *kerr.Error
	switch {
	case errors.Is(err, kerr.SaslAuthenticationFailed), errors.Is(err, kerr.UnsupportedSaslMechanism), errors.Is(err, kerr.IllegalSaslState):
		errors.As(err, &code)
		return fmt.Errorf("the broker at %s refuses the login: %w", at, Plain(code))
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no broker answers at %s: %s; start one with: muster serve", at, DialCause(err))
	}
	return fmt.Errorf("no broker answers at %s: %s", at, DialCause(err))
}

// findBroker returns the first broker that answers, or else the error of the
// first in the list. They are asked at the same time: one that is silent must
// not hide another that is not.
func findBroker(ctx context.Context, brokers []*kgo.Broker) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, ConnectTimeout)
	defer cancel()
	type answer struct {
		broker int
		err    error
	}
	answers := make(chan answer, len(brokers))
	for i, b := range brokers {
		go func() {
			req := kmsg.NewPtrMetadataRequest()
			req.Topics = []kmsg.MetadataRequestTopic{} // Brokers only.
			_, err := b.Request(ctx, req)
			answers <- answer{i, err}
		}()
	}
	errs := make([]error, len(brokers))
	for range brokers {
		a := <-answers
		if a.err == nil {
			return a.broker, nil
		}
		errs[a.broker] = a.err
	}
	return 0, errs[0]
}

// Admin is connect for commands that only send administrative requests.
func (f *Flags) Admin(ctx context.Context) (*kadm.Client, error) {
	client, err := f.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return kadm.NewClient(client), nil
}

// WriteJSON writes a value for programs: indented, since people look at it too.
func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// IsTerminal says whether a person sits at the other end.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Confirm asks a person at a terminal to say yes. Programs must say so with
// --yes: a question that no one reads has no answer.
func Confirm(ctx context.Context, in io.Reader, out io.Writer, question string, terminal bool) error {
	if !terminal {
		return Usagef("add --yes to be sure; there is no terminal to ask at")
	}
	fmt.Fprintf(out, "%s [y/N] ", question)
	answered := make(chan string, 1)
	go func() {
		var answer string
		_, _ = fmt.Fscanln(in, &answer) // What cannot be read is not a yes.
		answered <- answer
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(out)
		return context.Cause(ctx)
	case answer := <-answered:
		if answer = strings.ToLower(answer); answer == "y" || answer == "yes" {
			return nil
		}
		return errors.New("nothing was changed")
	}
}

// DefaultHTTP is where a broker answers HTTP unless it is told otherwise. If it is
// taken, as by another broker on this machine, the broker starts without.
const DefaultHTTP = "127.0.0.1:9021"

// HTTPEnv names the HTTP address of a broker.
const HTTPEnv = "MUSTER_HTTP"
