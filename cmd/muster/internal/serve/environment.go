package serve

import (
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"

	"muster/cmd/muster/internal/cli"
	"muster/internal/metadata/config"
	"muster/internal/words"
)

const (
	envPrefix = "MUSTER_"
	// kafkaPrefix is that of Kafka's own container images, whose variables are taken too.
	kafkaPrefix = "KAFKA_"
)

// kafkaNames makes names of settings of variables as Kafka's images do. Of three and more
// underscores the first three are a hyphen.
var kafkaNames = strings.NewReplacer("___", "-", "__", "_", "_", ".")

// fromKafka takes settings from variables like KAFKA_LOG_RETENTION_MS. Others that begin so
// are not warned of: KAFKA_OPTS, KAFKA_HOME and KAFKA_BROKERS are no settings of Kafka's either.
func fromKafka(props map[string]string, environ []string) (advertised bool) {
	for _, e := range environ {
		variable, value, _ := strings.Cut(e, "=")
		short, ok := strings.CutPrefix(variable, kafkaPrefix)
		name := kafkaNames.Replace(strings.ToLower(short))
		if ok && (config.BrokerDef(name) != nil || config.IsOfListener(name)) {
			props[name] = value
			advertised = advertised || name == "advertised.listeners"
		}
	}
	return advertised
}

// listenForAll has the broker listen on all addresses, on the ports that it advertises, unless
// a setting says where: so do Kafka's images when only KAFKA_ADVERTISED_LISTENERS is given.
func listenForAll(props map[string]string) {
	if _, set := props["listeners"]; set {
		return
	}
	var listeners []string
	for _, entry := range config.SplitList(props["advertised.listeners"]) {
		name, address, _ := strings.Cut(entry, "://")
		if _, port, err := net.SplitHostPort(address); err == nil {
			listeners = append(listeners, name+"://0.0.0.0:"+port)
		}
	}
	if len(listeners) > 0 { // The broker tells what is wrong with others.
		props["listeners"] = strings.Join(listeners, ",")
	}
}

// fromEnvironment takes settings from variables like MUSTER_LOG_RETENTION_MS, and says which
// ones look like settings and are none.
func fromEnvironment(props map[string]string, environ []string) (unknown []string) {
	names := map[string]string{}
	for _, d := range config.BrokerDefs() {
		names[strings.ToUpper(strings.ReplaceAll(strings.TrimPrefix(d.Name, "muster."), ".", "_"))] = d.Name
	}
	for _, e := range environ {
		variable, value, _ := strings.Cut(e, "=")
		short, ok := strings.CutPrefix(variable, envPrefix)
		if !ok {
			continue
		}
		if name, ok := names[short]; ok {
			props[name] = value
		} else if !slices.Contains(clientEnv, variable) {
			near := ""
			if n := words.Nearest(short, slices.Sorted(maps.Keys(names))); n != "" {
				near = "; did you mean " + envPrefix + n + "?"
			}
			unknown = append(unknown, fmt.Sprintf("environment variable %s is not a setting%s", variable, near))
		}
	}
	return unknown
}

// WarnOfEnvironment tells of variables that look like those of commands that talk to a broker.
func WarnOfEnvironment(w io.Writer, environ []string) {
	var known []string
	for _, variable := range clientEnv {
		known = append(known, strings.TrimPrefix(variable, envPrefix))
	}
	for _, unknown := range environ {
		variable, _, _ := strings.Cut(unknown, "=")
		short, ok := strings.CutPrefix(variable, envPrefix)
		if !ok || len(fromEnvironment(map[string]string{}, []string{unknown})) == 0 {
			continue
		}
		if near := words.Nearest(short, known); near != "" {
			fmt.Fprintf(w, "warning: environment variable %s has no effect; did you mean %s?\n", variable, envPrefix+near)
		}
	}
}

// clientEnv are the variables of the other commands, which may be there for everything that
// runs in a shell.
var clientEnv = []string{cli.HTTPEnv, cli.BrokerEnv, cli.UserEnv, cli.PasswordFileEnv, cli.CommandConfigEnv, cli.TLSCAEnv}
