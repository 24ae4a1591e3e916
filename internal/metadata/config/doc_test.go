package config

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"muster/internal/assert"
)

var rewrite = flag.Bool("rewrite", false, "write docs/settings.md anew")

const settingsDoc = "../../../docs/settings.md"

func TestSettingsDocIsCurrent(t *testing.T) {
	want := document()
	if *rewrite {
		assert.Must(t, os.WriteFile(settingsDoc, want, 0o644))
	}
	got, err := os.ReadFile(settingsDoc)
	assert.Must(t, err)
	assert.True(t, bytes.Equal(got, want), "%s is out of date; make generate writes it", settingsDoc)
}

// document is the page that lists all settings.
func document() []byte {
	var out bytes.Buffer
	out.WriteString(`# Settings

Every setting of the broker, of topics and of groups, with its default. The names are Kafka's; those that begin with
` + "`muster.`" + ` are muster's own. This page is generated from the tables that the broker itself uses.

Broker settings are taken, each overriding the one before, from the file given with ` + "`--config`" + `, from environment
variables (` + "`num.partitions`" + ` is ` + "`MUSTER_NUM_PARTITIONS`, `muster.store` is `MUSTER_STORE`" + `; below these also those of Kafka's
container image, as ` + "`KAFKA_NUM_PARTITIONS`" + `), from ` + "`--set name=value`" + `, and from the
other flags of ` + "`muster serve`" + `. ` + "`${env:NAME}` and `${file:/path}`" + ` in a value stand for what is kept elsewhere. *Dynamic* settings can
also be changed while the broker runs (` + "`kafka-configs --alter --entity-type brokers`" + `); the others are read at the start. Settings
marked *per listener* may be set for one listener, as ` + "`listener.name.<listener>.<setting>`" + `, with the listener's name in
lower case; those marked *per mechanism* also for one SASL mechanism there, as ` + "`listener.name.<listener>.<mechanism>.<setting>`" + `.

## Broker

`)
	writeSettings(&out, BrokerDefs(), true)
	out.WriteString("\n## Topics\n\nSet with `muster topics create --config` and `muster topics alter --config`. A topic setting that is not set has the value of\nthe broker setting in the last column.\n\n")
	writeSettings(&out, TopicDefs(), false)
	out.WriteString("\n## Groups\n\nSet with `kafka-configs --alter --entity-type groups --entity-name GROUP`.\n\n")
	writeSettings(&out, GroupDefs(), false)
	out.WriteString("\n## Accepted without effect\n\nConfiguration files of Kafka can be used as they are: these names are accepted, and one warning at the start lists those\nthat are set.\n\n")
	var inert []string
	for _, d := range BrokerDefs() {
		if d.Inert {
			inert = append(inert, "`"+d.Name+"`")
		}
	}
	out.WriteString(strings.Join(inert, ", ") + "\n")
	return out.Bytes()
}

func writeSettings(out *bytes.Buffer, defs []Def, broker bool) {
	last := "broker setting"
	if broker {
		last = ""
	}
	fmt.Fprintf(out, "| setting | default | meaning | %s |\n|---|---|---|---|\n", last)
	for _, d := range defs {
		if d.Inert {
			continue
		}
		var notes []string
		switch {
		case !broker && d.Synonym != "":
			notes = append(notes, "`"+d.Synonym+"`")
		case broker && !d.Static:
			notes = append(notes, "dynamic")
		}
		if d.Scope != Whole {
			notes = append(notes, map[Scope]string{Listener: "per listener", Mechanism: "per mechanism"}[d.Scope])
		}
		doc := strings.ReplaceAll(d.Doc, "|", "\\|")
		if len(d.OneOf) > 1 {
			doc += " One of " + strings.ReplaceAll("`"+strings.Join(d.OneOf, "`, `")+"`.", "``", "*(empty)*")
		}
		value := ""
		if d.Default != "" {
			value = "`" + d.Default + "`"
		}
		fmt.Fprintf(out, "| `%s` | %s | %s | %s |\n", d.Name, value, doc, strings.Join(notes, ", "))
	}
}
