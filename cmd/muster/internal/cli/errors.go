package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/watch/groupview"
)

// UsageError is an error in the command line, found by a command itself.
type UsageError struct{ msg string }

func (e *UsageError) Error() string { return e.msg }

func Usagef(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// InterruptedError is what a command returns that a signal stopped before its
// work was done, when there is more to say than that.
type InterruptedError struct{ Text string }

func (e *InterruptedError) Error() string { return e.Text }

// IsClosedPipe says whether the reader of our output went away, as head does
// when it has seen enough. io.ErrClosedPipe is that of a pipe in the process.
func IsClosedPipe(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe)
}

// TopicError is the error that a broker answered for a topic. Its own message
// is best, since it can name the value that is wrong; the text of the error
// code is second.
func TopicError(topic string, err error, message string) error {
	switch {
	case strings.Contains(message, topic):
		return errors.New(message)
	case message != "":
		return fmt.Errorf("topic %s: %s", topic, message)
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return &noTopicError{topic}
	}
	return fmt.Errorf("topic %s: %w", topic, Plain(err))
}

// Plain words errors for people: a Kafka error by its sentence, with the code's
// name at the end, and of the errors of a request's parts the first.
func Plain(err error) error {
	var code *kerr.Error
	var shards *kadm.ShardErrors
	switch {
	case errors.As(err, &shards) && len(shards.Errs) > 0:
		return Plain(shards.Errs[0].Err)
	case errors.Is(err, kerr.SecurityDisabled):
		return errNoRules
	case errors.As(err, &code):
		return fmt.Errorf("%s (%w)", strings.TrimSuffix(code.Description, "."), codeOnly{code})
	}
	return err
}

// errNoRules is SECURITY_DISABLED with what to do about it.
var errNoRules = fmt.Errorf("ACLs are off, and everyone may do everything; to turn them on, start the broker with authorizer.class.name=muster (%w)", codeOnly{kerr.SecurityDisabled})

// codeOnly prints a Kafka error as its name, and still is that error.
type codeOnly struct{ code *kerr.Error }

func (e codeOnly) Error() string { return e.code.Message }
func (e codeOnly) Unwrap() error { return e.code }

// DialCause is the part of a failed connection's error that tells people what
// is wrong.
func DialCause(err error) string {
	var errno syscall.Errno
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.As(err, &dns):
		return fmt.Sprintf("the name %q cannot be resolved: %s", dns.Name, strings.TrimSpace(dns.Err[strings.LastIndex(dns.Err, ": ")+1:]))
	case errors.As(err, &errno) && !errors.Is(err, syscall.ECONNRESET):
		return errno.Error()
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "no answer within " + ConnectTimeout.String()
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return "its certificate is not signed by a trusted authority; --tls-ca names a file with the certificates to trust"
	case errors.As(err, new(tls.RecordHeaderError)):
		return "it does not speak TLS"
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return "the connection was closed; is that a Kafka port? It may want TLS (--tls) or a login (--user)"
	}
	return err.Error()
}

// BrokerError is the error that a broker answered, by its own message if it has one.
func BrokerError(code int16, message *string) error {
	err := kerr.TypedErrorForCode(code)
	if message == nil || *message == "" || err == kerr.SecurityDisabled {
		return Plain(err)
	}
	return fmt.Errorf("%s (%w)", strings.TrimSuffix(*message, "."), codeOnly{err})
}

// GroupError is the error that a broker answered for a group.
func GroupError(name string, err error) error {
	if errors.Is(err, kerr.GroupIDNotFound) {
		return &groupview.NoGroupError{Name: name}
	}
	return fmt.Errorf("group %s: %w", name, Plain(err))
}

var ErrNoAnswer = errors.New("the broker did not answer")
