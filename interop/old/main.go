// Command old logs in to the broker of which interop/matrix/secured.go tells with clients
// that are years old, each in the version of go.mod:
//
//	old librdkafka    of confluent-kafka-go; before 2.6.1 it repeats its nonce in SCRAM
//	old sarama        which by default logs in with bare tokens
//
// It is a module of its own, since a module holds one version of a client. It says what came
// of each check in the form that interop/matrix reads.
package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
)

const (
	patience = 60 * time.Second
	records  = 10
	user     = "admin" // who may do everything
	password = "admin-secret"
)

// client is what a program of a client does. Both end with an error if the broker does not
// take the login.
type client interface {
	version() string
	produce(way way, topic string, values []string) error
	consume(way way, topic string, n int) ([]string, error)
	refused(err error) bool
}

// way is how to log in.
type way struct {
	listener, mechanism, password string
}

func (w way) addr() string { return os.Getenv("MUSTER_MATRIX_" + w.listener) }

func (w way) tls() bool { return w.listener == "SASL_SSL" }

func authority() string { return os.Getenv("MUSTER_MATRIX_CA") }

func main() {
	clients := map[string]client{"librdkafka": librdkafka{}, "sarama": oldSarama{}}
	if len(os.Args) < 2 || clients[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: old librdkafka|sarama")
		os.Exit(2)
	}
	name, c := os.Args[1], clients[os.Args[1]]
	fmt.Println("version", c.version())
	failed := false
	check := func(what string, err error) {
		if err != nil {
			fmt.Printf("failed %s: %v\n", what, err)
			failed = true
			return
		}
		fmt.Println("ok " + what)
	}
	for i, listener := range []string{"SASL_PLAINTEXT", "SASL_SSL"} {
		for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
			topic := "old-" + name + "-" + listener + "-" + mechanism
			check([]string{"login in plain text: ", "login over TLS: "}[i]+mechanism, roundTrip(c, way{listener, mechanism, password}, topic))
		}
	}
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		err := c.produce(way{"SASL_PLAINTEXT", mechanism, "guessed"}, "old-"+name+"-refused", []string{"forged"})
		switch {
		case err == nil:
			err = errors.New("the record is written")
		case c.refused(err):
			err = nil
		}
		check("refused: a wrong password by "+mechanism, err)
	}
	if failed {
		os.Exit(1)
	}
}

func roundTrip(c client, w way, topic string) error {
	var values []string
	for i := range records {
		values = append(values, strconv.Itoa(i))
	}
	if err := c.produce(w, topic, values); err != nil {
		return fmt.Errorf("produce: %w", err)
	}
	got, err := c.consume(w, topic, records)
	if err != nil {
		return fmt.Errorf("consume: %w", err)
	}
	if fmt.Sprint(got) != fmt.Sprint(values) {
		return fmt.Errorf("read %q, not %q", got, values)
	}
	return nil
}
