package broker_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"muster/internal/assert"
)

// TestGrafanaFilesAskForNamesThatAreThere reads every expression of the dashboard and the
// alert rules, and looks for each metric and label in a scrape of a busy broker.
func TestGrafanaFilesAskForNamesThatAreThere(t *testing.T) {
	there := map[string]map[string]bool{} // Labels by name.
	for series := range scrape(t, busyBroker(t)) {
		name, rest, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
		if there[name] == nil {
			there[name] = map[string]bool{"le": true, "instance": true, "job": true}
		}
		for _, l := range strings.Split(rest, ",") {
			label, _, _ := strings.Cut(l, "=")
			there[name][label] = true
		}
	}
	alerts, dashboard := alertExpressions(t), dashboardExpressions(t)
	assert.True(t, len(alerts) >= 10 && len(dashboard) >= 30, "%d alerts and %d expressions", len(alerts), len(dashboard))
	for _, expr := range slices.Concat(alerts, dashboard) {
		names, err := metricsIn(expr)
		assert.True(t, err == nil && len(names) != 0, "%s: %d metrics, %v", expr, len(names), err)
		for name, labels := range names {
			assert.True(t, there[name] != nil, "%s: there is no %s", expr, name)
			for _, l := range labels {
				assert.False(t, there[name] != nil && !there[name][l], "%s: %s has no label %s", expr, name, l)
			}
		}
	}
}

// alertExpressions returns the expressions of the alert rules. Each is one line, and each
// rule has a summary and a severity.
func alertExpressions(t *testing.T) (out []string) {
	text := string(readGrafana(t, "alerts.yml"))
	count := func(word string) int { return strings.Count(text, "\n"+word) }
	for line := range strings.Lines(text) {
		if expr, ok := strings.CutPrefix(strings.TrimSpace(line), "expr: "); ok {
			out = append(out, expr)
		}
	}
	if n := count("      - alert: "); n != len(out) || n != count("          severity: ") || n != count("          summary: ") {
		t.Errorf("%d alerts, %d expressions, %d severities, %d summaries", n, len(out), count("          severity: "), count("          summary: "))
	}
	return out
}

// dashboardExpressions returns all expressions of the dashboard: of panels, annotations and
// variables.
func dashboardExpressions(t *testing.T) (out []string) {
	var all any
	must(t, json.Unmarshal(readGrafana(t, "muster.json"), &all))
	values := regexp.MustCompile(`^label_values\((.*), *\w+\)$`)
	ids := map[float64]bool{}
	var walk func(any)
	walk = func(x any) {
		switch x := x.(type) {
		case []any:
			for _, e := range x {
				walk(e)
			}
		case map[string]any:
			if expr, ok := x["expr"].(string); ok {
				out = append(out, expr)
			}
			if m := values.FindStringSubmatch(fmt.Sprint(x["query"])); m != nil {
				out = append(out, m[1])
			}
			if id, ok := x["id"].(float64); ok {
				assert.False(t, ids[id], "two panels have the id %v", id)
				ids[id] = true
			}
			for _, key := range slices.Sorted(maps.Keys(x)) {
				walk(x[key])
			}
		}
	}
	walk(all)
	return out
}

var (
	promToken = regexp.MustCompile(`^(?:\s+|"(?:[^"\\]|\\.)*"|[a-zA-Z_:][a-zA-Z0-9_:]*|\$\w+|\d[\w.]*|[<>=!]=|=~|!~|[-+*/%^<>=(){},\[\]])`)
	promWord  = regexp.MustCompile(`^[a-zA-Z_:]`)
	// Words that are followed by a list of labels, and others that are no metrics.
	promLists     = []string{"by", "without", "on", "ignoring", "group_left", "group_right"}
	promOperators = []string{"and", "or", "unless", "bool", "offset", "Inf", "NaN"}
)

// metricsIn reads an expression of PromQL as far as to know its metrics, and the labels
// that it selects each by. The labels that it groups by are those of the metrics in the
// same expression, mostly, so they are looked for in the only one if there is one.
func metricsIn(expr string) (map[string][]string, error) {
	tokens, err := promTokens(expr)
	if err != nil {
		return nil, err
	}
	out, open, grouped := map[string][]string{}, []string{}, []string{}
	closes := map[string]string{")": "(", "}": "{", "]": "["}
	last, inList := "", false
	for i, token := range tokens {
		next := ""
		if i+1 < len(tokens) {
			next = tokens[i+1]
		}
		switch {
		case slices.Contains([]string{"(", "{", "["}, token):
			inList = token == "(" && slices.Contains(promLists, tokens[max(i-1, 0)])
			open = append(open, token)
		case closes[token] != "":
			if len(open) == 0 || open[len(open)-1] != closes[token] {
				return nil, fmt.Errorf("%s closes nothing", token)
			}
			open, inList = open[:len(open)-1], false
		case !promWord.MatchString(token), slices.Contains(promLists, token), slices.Contains(promOperators, token), next == "(":
		case inList:
			grouped = append(grouped, token)
		case len(open) > 0 && open[len(open)-1] == "{":
			if slices.Contains([]string{"=", "!=", "=~", "!~"}, next) {
				out[last] = append(out[last], token)
			}
		case len(open) > 0 && open[len(open)-1] == "[":
			return nil, fmt.Errorf("%s is no duration", token)
		default:
			// An aggregation without parentheses, as in sum by (x) (y), is a word too.
			if slices.Contains(promLists, next) && slices.Contains([]string{"sum", "max", "min", "avg", "count", "topk"}, token) {
				continue
			}
			last = token
			out[token] = append(out[token], nil...)
		}
	}
	if len(open) > 0 {
		return nil, fmt.Errorf("%v is never closed", open)
	}
	if len(out) == 1 {
		for name := range out {
			out[name] = append(out[name], grouped...)
		}
	}
	return out, nil
}

func promTokens(expr string) (out []string, err error) {
	for rest := expr; rest != ""; {
		token := promToken.FindString(rest)
		if token == "" {
			return nil, fmt.Errorf("what is %q?", rest)
		}
		rest = rest[len(token):]
		if strings.TrimSpace(token) != "" {
			out = append(out, token)
		}
	}
	return out, nil
}

func TestMetricsInExpressions(t *testing.T) {
	for expr, want := range map[string]string{
		`up`: "map[up:[]]",
		`sum by (group) (increase(a_total{b="c{d}",e=~"f|g"}[10m])) >= 10`:               "map[a_total:[b e group]]",
		`a_b > 0 and on (x, y) c:d == 5 unless e`:                                        "map[a_b:[] c:d:[] e:[]]",
		`histogram_quantile(0.99, sum by (le) (rate(h_bucket[$__rate_interval]))) * 1e3`: "map[h_bucket:[le]]",
		`topk(10, sum(x) without (y)) / z == Inf`:                                        "map[x:[] z:[]]",
	} {
		got, err := metricsIn(expr)
		assert.True(t, err == nil && fmt.Sprint(got) == want, "%s: %v, %v, want %s", expr, got, err, want)
	}
	for _, bad := range []string{"sum(a", "a)", "a{b=\"c\"", "a[x]", "a ; b", "sum(a}"} {
		if got, err := metricsIn(bad); err == nil {
			t.Errorf("%s: %v", bad, got)
		}
	}
}
