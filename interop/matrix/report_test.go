package main

import (
	"errors"
	"strings"
	"testing"
)

func TestARowPassesOnlyIfItsProgramDoesAndSaysWhatItTried(t *testing.T) {
	for _, tt := range []struct {
		output string
		err    error
		failed bool
		cell   string
	}{
		{"version 1.2\nnoise\nok produce: acks=0\n", nil, false, "passed"},
		{"version 1.2\nok produce: acks=0\nFAILED group: range\n", errors.New("exit status 1"), true, "**failed**: group: range"},
		{"ok produce: acks=0\nFAILED group: range\n", nil, true, "**failed**: group: range"},
		{"ok produce: acks=0\n", errors.New("not done after 4m0s"), true, "**failed**"},
		{"", nil, true, "**failed**"},
	} {
		r := result{output: tt.output, err: tt.err}
		r.parse()
		if r.failed() != tt.failed || r.cell() != tt.cell {
			t.Errorf("%q, error %v: failed %v, cell %q", tt.output, tt.err, r.failed(), r.cell())
		}
	}
}

func TestMarkdownListsWhatWasTriedWithAnyStore(t *testing.T) {
	m := &matrix{
		stores: []string{"disk", "redis"},
		rows:   []row{{name: "Java kafka-clients 4"}},
		results: map[string]map[string]result{
			"disk":  {"Java kafka-clients 4": {version: "4.4.0", passed: []string{"produce: gzip", "group: range", "produce: lz4"}}},
			"redis": {"Java kafka-clients 4": {version: "4.4.0", passed: []string{"produce: gzip"}, broken: []string{"group: sticky"}}},
		},
	}
	want := "| client | version | what was tried | disk | redis |\n|---|---|---|---|---|\n" +
		"| Java kafka-clients | 4.4.0 | **produce:** gzip; lz4<br>**group:** range; sticky | passed | **failed**: group: sticky |\n"
	if got := strings.TrimPrefix(m.markdown(), intro); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if n := m.failures(); n != 1 {
		t.Errorf("%d failures", n)
	}
}
