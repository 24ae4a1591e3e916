package serve

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/cmd/muster/internal/cli"
)

// listenerEnv has muster serve answer HTTP at an address.
const listenerEnv = envPrefix + "HTTP_LISTENER"

// HealthCommand asks a broker how it is.
func HealthCommand() *cobra.Command {
	var address string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Check whether a broker answers requests",
		Long: `Check over HTTP (GET /healthz) whether a broker answers requests: for health
checks in containers, which have no shell. The exit code is 0 if it does. It is 1
if nothing answers, or if the broker has problems, which are printed to stderr.

The address is the one that --http or $` + cli.HTTPEnv + ` names, or at which muster serve
answers in the same environment ($` + listenerEnv + `). TLS certificates are
not verified: they are issued for the names that others use.`,
		Example: `  muster health
  muster health --http 127.0.0.1:8080 --timeout 1s

  # in a Dockerfile
  HEALTHCHECK --start-interval=200ms --start-period=1m CMD ["/usr/bin/muster", "health"]`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			url, err := healthURL(cmp.Or(address, os.Getenv(listenerEnv), cli.DefaultHTTP))
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			if err := checkHealth(ctx, url); err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "ok")
			return err
		},
	}
	cmd.Flags().StringVar(&address, "http", os.Getenv(cli.HTTPEnv), "address or `URL` at which the broker answers HTTP; also from $"+cli.HTTPEnv+" (default "+cli.DefaultHTTP+")")
	cmd.Flags().DurationVar(&timeout, "timeout", cli.ConnectTimeout, "how long to wait for the answer")
	return cmd
}

// healthURL makes a URL of an address to ask or to listen on.
func healthURL(address string) (string, error) {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		scheme, rest = "http", address
	}
	host, port, err := net.SplitHostPort(strings.TrimSuffix(rest, "/"))
	if err != nil || port == "" || scheme != "http" && scheme != "https" {
		return "", cli.Usagef("--http takes an address such as http://%s, not %q", cli.DefaultHTTP, address)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return scheme + "://" + net.JoinHostPort(host, port) + "/healthz", nil
}

// checkHealth returns what is wrong with a broker.
func checkHealth(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	answer, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return fmt.Errorf("no broker answers at %s: %s", url, cli.DialCause(err))
	}
	defer func() { _ = answer.Body.Close() }() // It was only read.
	if answer.StatusCode == http.StatusOK {
		return nil
	}
	var health struct{ Problems []string }
	if err := json.NewDecoder(io.LimitReader(answer.Body, 1<<20)).Decode(&health); err != nil || len(health.Problems) == 0 {
		return fmt.Errorf("%s answers %s", url, answer.Status)
	}
	return errors.New(strings.Join(health.Problems, "\n"))
}
