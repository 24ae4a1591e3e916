package records

import (
	"strings"
	"testing"
	"time"

	"muster"
	"muster/cmd/muster/internal/cli"
	"muster/internal/assert"
)

func TestProduceFailsIfTheBrokerGoesAway(t *testing.T) {
	b, err := muster.Start(t.Context(), muster.Config{})
	must(t, err)
	flags := &produceFlags{Flags: cli.Flags{Brokers: []string{b.Addr()}}, compression: "none", acks: "all", partition: -1}
	opts, err := producerOptions(flags)
	must(t, err)
	client, err := flags.Connect(t.Context(), opts...)
	must(t, err)
	defer client.Close()
	parse, err := newLineParser(ProduceCommand().Flags(), flags)
	must(t, err)
	must(t, b.Close())
	p := &producer{client: client, topic: "a", parse: parse, limit: kafkaMaxMessageBytes, patience: 100 * time.Millisecond}
	err = p.run(t.Context(), strings.NewReader("x\ny\n"))
	want := "2 records failed, the first in line 1: the broker did not acknowledge the record within 100ms; it may have been written"
	assert.True(t, err != nil && err.Error() == want, "the error is %v, want %s", err, want)
	assert.Equal(t, p.summary(), ProduceSummary{Topic: "a", Failed: 2}, "the summary")
}

// A line is a record: what is not understood of it is refused, since it would be lost without a
// word.
func TestALineIsOneRecord(t *testing.T) {
	for line, want := range map[string]string{
		`{"value":"v"}`:                              "",
		`{"value":null}`:                             "",
		`{"value":"v"} {"value":"w"}`:                "more than one JSON value",
		`{"key":"k"}`:                                `"value" is missing`,
		`{"value":"v","vaule":"w"}`:                  "unknown field",
		`{"value":"dg==","encoding":"base64"}`:       "",
		`{"value":"dg==","encoding":"hex"}`:          "encoding is",
		`{"value":"v","encoding":"base64"}`:          "not base64",
		`{"value":"v","timestamp":"yesterday"}`:      "timestamp is",
		`{"value":"v","headers":{"a":"1","b":null}}`: "",
		`{"value":"v","headers":"a=1"}`:              "headers must be",
	} {
		r, err := parseJSONLine([]byte(line))
		assert.True(t, (err == nil) == (want == "") && (err == nil || strings.Contains(err.Error(), want)), "%s is %+v (%v)", line, r, err)
	}
}
