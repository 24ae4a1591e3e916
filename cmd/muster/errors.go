package main

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
)

// usageError is an error in the command line, found by a command itself.
type usageError struct{ msg string }

func (e *usageError) Error() string { return e.msg }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// interruptedError is what a command returns that a signal stopped before its
// work was done, when there is more to say than that.
type interruptedError struct{ msg string }

func (e *interruptedError) Error() string { return e.msg }

// isClosedPipe says whether the reader of our output went away, as head does
// when it has seen enough. io.ErrClosedPipe is that of a pipe in the process.
func isClosedPipe(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe)
}

// topicError is the error that a broker answered for a topic. Its own message
// is best, since it can name the value that is wrong; the text of the error
// code is second.
func topicError(topic string, err error, message string) error {
	switch {
	case strings.Contains(message, topic):
		return errors.New(message)
	case message != "":
		return fmt.Errorf("topic %s: %s", topic, message)
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return &noTopicError{topic}
	}
	return fmt.Errorf("topic %s: %w", topic, plain(err))
}

// plain words errors for people: a Kafka error by its sentence, with the code's
// name at the end, and of the errors of a request's parts the first.
func plain(err error) error {
	var code *kerr.Error
	var shards *kadm.ShardErrors
	switch {
	case errors.As(err, &shards) && len(shards.Errs) > 0:
		return plain(shards.Errs[0].Err)
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

// dialCause is the part of a failed connection's error that tells people what
// is wrong.
func dialCause(err error) string {
	var errno syscall.Errno
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.As(err, &dns):
		return fmt.Sprintf("the name %q cannot be resolved: %s", dns.Name, strings.TrimSpace(dns.Err[strings.LastIndex(dns.Err, ": ")+1:]))
	case errors.As(err, &errno) && !errors.Is(err, syscall.ECONNRESET):
		return errno.Error()
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "no answer within " + connectTimeout.String()
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return "its certificate is not signed by a trusted authority; --tls-ca names a file with the certificates to trust"
	case errors.As(err, new(tls.RecordHeaderError)):
		return "it does not speak TLS"
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return "the connection was closed; is that a Kafka port? It may want TLS (--tls) or a login (--user)"
	}
	return err.Error()
}
