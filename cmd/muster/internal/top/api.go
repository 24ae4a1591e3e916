package top

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"muster/cmd/muster/internal/cli"
	"muster/internal/web"
)

const (
	// apiTimeout bounds a request to the HTTP API.
	apiTimeout = 10 * time.Second
	// maxAnswer bounds what is read of an answer.
	maxAnswer = 16 << 20
	// topLimit is how many groups are asked for at a time.
	topLimit = 500
)

// topAPI is the HTTP API of a broker.
type topAPI struct {
	base           string // Such as http://127.0.0.1:9021.
	user, password string
	client         *http.Client
}

// findAPI finds out where a broker answers HTTP, and as whom to ask.
func (f *topFlags) findAPI(ctx context.Context) (*topAPI, error) {
	if cli.IsTerminal(os.Stdin) {
		f.Login.Terminal = os.Stdin
	}
	id, _, err := f.Login.Identity()
	if err != nil {
		return nil, err
	}
	base, told := f.http, false
	if base == "" {
		told = true
		if base, err = f.askAddress(ctx); err != nil {
			return nil, err
		}
	}
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, cli.Usagef("--http takes an address such as http://%s, not %q", cli.DefaultHTTP, f.http)
	}
	if told && id.User != "" && exposes(u) {
		return nil, fmt.Errorf("the broker names %s for HTTP, which is plain text: the password of %s could be read on the way; "+
			"have the broker answer at https:// (see docs/http.md), or give --http %s if that is all right", printable(base), id.User, printable(base))
	}
	transport := &http.Transport{TLSClientConfig: id.TLS, DialContext: (&net.Dialer{Timeout: cli.ConnectTimeout}).DialContext}
	return &topAPI{
		base: strings.TrimSuffix(base, "/"), user: id.User, password: id.Password,
		client: &http.Client{Transport: transport, Timeout: apiTimeout},
	}, nil
}

// The settings that tell where a broker answers HTTP, the best first.
var addressSettings = []string{"muster.http.advertised", "muster.http.listener"}

// askAddress asks a broker where it answers HTTP. One that does not say so does it where
// brokers do by default, if at all.
func (f *topFlags) askAddress(ctx context.Context) (string, error) {
	admin, err := f.Admin(ctx)
	if err != nil {
		return "", err
	}
	defer admin.Close()
	brokers, err := admin.ListBrokers(ctx)
	if err != nil {
		return "", cli.Plain(err)
	}
	if len(brokers) == 0 {
		return cli.DefaultHTTP, nil
	}
	described, err := admin.DescribeBrokerConfigs(ctx, brokers[0].NodeID)
	if err != nil || len(described) == 0 || described[0].Err != nil {
		return cli.DefaultHTTP, nil // It may not say, or is another kind of broker.
	}
	address := cmp.Or(configOf(described[0], addressSettings[0]), configOf(described[0], addressSettings[1]))
	return cmp.Or(reachable(address, brokers[0].Host), cli.DefaultHTTP), nil
}

func configOf(described kadm.ResourceConfig, name string) string {
	for _, c := range described.Configs {
		if c.Key == name && c.Value != nil {
			return *c.Value
		}
	}
	return ""
}

// reachable makes an address to go to of one to listen on: a broker that listens on all of
// its addresses, or on any port, is found where its Kafka listener is.
func reachable(address, host string) string {
	name, port, err := net.SplitHostPort(address)
	switch ip := net.ParseIP(name); {
	case err != nil:
		return address // A URL, or nothing.
	case port == "0":
		return ""
	case name == "" || ip != nil && ip.IsUnspecified():
		return net.JoinHostPort(host, port)
	}
	return address
}

// exposes says whether a password that is sent to an address can be read on the way.
func exposes(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "http" && u.Hostname() != "localhost" && !ip.IsLoopback()
}

func (a *topAPI) close() { a.client.CloseIdleConnections() }

// groups asks for groups as the view has them in order.
func (a *topAPI) groups(ctx context.Context, v *topView) (*web.GroupList, error) {
	sort := topSorts[v.sort].by
	if v.down {
		sort = "-" + sort
	}
	q := url.Values{"sort": {sort}, "limit": {fmt.Sprint(topLimit)}}
	if v.query != "" {
		q.Set("q", v.query)
	}
	var out web.GroupList
	return &out, a.get(ctx, "/groups?"+q.Encode(), &out)
}

// explain asks why a group is as it is.
func (a *topAPI) explain(ctx context.Context, group string) (*web.Explanation, error) {
	var out web.Explanation
	return &out, a.get(ctx, "/groups/"+url.PathEscape(group)+"/explain", &out)
}

// get reads an answer.
func (a *topAPI) get(ctx context.Context, path string, to any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base+web.Prefix+path, http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	if a.user != "" {
		req.SetBasicAuth(a.user, a.password)
	}
	resp, err := a.client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("no broker answers HTTP at %s: %s; --http names another address", a.base, cli.DialCause(err))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch {
	case err != nil:
		return fmt.Errorf("the answer of %s broke off: %w", a.base, err)
	case resp.StatusCode != http.StatusOK:
		return a.refused(resp.StatusCode, body)
	case json.Unmarshal(body, to) != nil:
		return fmt.Errorf("what answers at %s is no muster broker", a.base)
	}
	return nil
}

// refused words an answer that is an error.
func (a *topAPI) refused(code int, body []byte) error {
	var problem struct{ Message string }
	_ = json.Unmarshal(body, &problem)
	switch {
	case code == http.StatusUnauthorized && a.user == "":
		return errors.New("the broker wants a login; --user says who you are")
	case code == http.StatusUnauthorized:
		return fmt.Errorf("the broker refuses the login of %s", a.user)
	case problem.Message != "":
		return errors.New(printable(problem.Message))
	}
	return fmt.Errorf("what answers at %s is no muster broker: it says %d %s", a.base, code, http.StatusText(code))
}
