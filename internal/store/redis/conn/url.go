package conn

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// deployment is what a URL says about the servers behind it.
type deployment string

const (
	anyDeployment      deployment = ""         // one server or a cluster, whichever answers
	clusterDeployment  deployment = "cluster"  // nodes of a Redis Cluster
	sentinelDeployment deployment = "sentinel" // sentinels that know the primary
)

// schemes says what each scheme stands for.
var schemes = map[string]struct {
	deployment deployment
	tls        bool
}{
	"redis":           {anyDeployment, false},
	"rediss":          {anyDeployment, true},
	"redis+cluster":   {clusterDeployment, false},
	"rediss+cluster":  {clusterDeployment, true},
	"redis+sentinel":  {sentinelDeployment, false},
	"rediss+sentinel": {sentinelDeployment, true},
}

// The parameters that a URL's query may have.
const (
	paramInsecure         = "insecure"
	paramCA               = "ca"
	paramCert             = "cert"
	paramKey              = "key"
	paramSentinelUser     = "sentinel_user"
	paramSentinelPassword = "sentinel_password"
)

// target is a parsed URL.
type target struct {
	deployment deployment
	addresses  []string
	user       string
	password   string
	db         int
	masterName string

	tls      bool
	insecure bool
	ca       string
	cert     string
	key      string

	sentinelUser     string
	sentinelPassword string
}

// parseURL reads a URL without package net/url, which refuses several addresses
// and prints passwords in its errors. Text that may be part of a password, if
// someone forgot to escape it, is never put into an error.
func parseURL(text string) (target, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	kind, known := schemes[strings.ToLower(scheme)]
	if !ok || !known {
		if !ok {
			return target{}, fmt.Errorf("a Redis URL begins with one of %s", allowedSchemes())
		}
		return target{}, fmt.Errorf("scheme %q is not one of %s", scheme, allowedSchemes())
	}
	t := target{deployment: kind.deployment, tls: kind.tls}
	rest, query, _ := strings.Cut(rest, "?")
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		if err := t.parseUser(rest[:at]); err != nil {
			return target{}, err
		}
		rest = rest[at+1:]
	}
	hosts, path, _ := strings.Cut(rest, "/")
	for _, parse := range []func() error{
		func() error { return t.parseAddresses(hosts) },
		func() error { return t.parsePath(path) },
		func() error { return t.parseQuery(query) },
	} {
		if err := parse(); err != nil {
			if strings.Contains(query, "@") && t.password == "" {
				err = fmt.Errorf("%w (a password with special characters must be percent-encoded)", err)
			}
			return target{}, err
		}
	}
	return t, nil
}

func allowedSchemes() string {
	names := slices.Sorted(maps.Keys(schemes))
	for i := range names {
		names[i] += "://"
	}
	return strings.Join(names, ", ")
}

func (t *target) parseUser(text string) error {
	user, password, _ := strings.Cut(text, ":")
	var err, err2 error
	t.user, err = url.PathUnescape(user)
	t.password, err2 = url.PathUnescape(password)
	if err != nil || err2 != nil {
		return errors.New("user and password must be percent-encoded: a % stands before two hexadecimal digits")
	}
	return nil
}

func (t *target) parseAddresses(text string) error {
	defaultPort := "6379"
	if t.deployment == sentinelDeployment {
		defaultPort = "26379"
	}
	for i, address := range strings.Split(text, ",") {
		// IPv6 addresses stand in brackets and hold colons themselves.
		if strings.LastIndexByte(address, ':') <= strings.LastIndexByte(address, ']') {
			address += ":" + defaultPort
		}
		host, port, err := net.SplitHostPort(address)
		if err != nil || host == "" {
			return fmt.Errorf("address %d is not host:port", i+1)
		}
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return fmt.Errorf("the port of host %q is not a number from 1 to 65535", host)
		}
		t.addresses = append(t.addresses, net.JoinHostPort(host, port))
	}
	return nil
}

func (t *target) parsePath(path string) error {
	db := path
	switch t.deployment {
	case clusterDeployment:
		if path != "" {
			return errors.New("a cluster's URL has no path: a cluster has only database 0")
		}
	case sentinelDeployment:
		t.masterName, db, _ = strings.Cut(path, "/")
		if t.masterName == "" {
			return errors.New("a sentinel's URL needs the name of the primary: redis+sentinel://host:port/<master-name>[/db]")
		}
	}
	if db == "" {
		return nil
	}
	n, err := strconv.Atoi(db)
	if err != nil || n < 0 {
		return errors.New("the database, after the last slash, is not a number from 0 on")
	}
	t.db = n
	return nil
}

func (t *target) parseQuery(text string) error {
	values, err := url.ParseQuery(text)
	if err != nil {
		return errors.New("the query, after the question mark, is not name=value&name=value, percent-encoded")
	}
	fields := map[string]*string{}
	insecure := ""
	if t.tls {
		fields[paramInsecure], fields[paramCA], fields[paramCert], fields[paramKey] = &insecure, &t.ca, &t.cert, &t.key
	}
	if t.deployment == sentinelDeployment {
		fields[paramSentinelUser], fields[paramSentinelPassword] = &t.sentinelUser, &t.sentinelPassword
	}
	for name, value := range values {
		field, ok := fields[name]
		switch {
		case !ok && len(fields) == 0:
			return errors.New("this kind of URL takes no parameters after a question mark (rediss:// and redis+sentinel:// do)")
		case !ok:
			return fmt.Errorf("parameter %q is not one of %s", name, strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
		case len(value) != 1 || value[0] == "":
			return fmt.Errorf("parameter %q needs one value", name)
		}
		*field = value[0]
	}
	if insecure != "" {
		if t.insecure, err = strconv.ParseBool(insecure); err != nil {
			return fmt.Errorf("parameter %q is true or false", paramInsecure)
		}
	}
	if (t.cert == "") != (t.key == "") {
		return fmt.Errorf("parameters %q and %q come together: a client certificate and its private key", paramCert, paramKey)
	}
	return nil
}

// IsPlainBeyondLoopback says whether a URL names a server on another machine that is talked
// to without TLS.
func IsPlainBeyondLoopback(text string) bool {
	t, err := parseURL(text)
	return err == nil && !t.tls && slices.ContainsFunc(t.addresses, func(address string) bool {
		host, _, err := net.SplitHostPort(address)
		ip := net.ParseIP(host)
		return err == nil && host != "localhost" && (ip == nil || !ip.IsLoopback())
	})
}
