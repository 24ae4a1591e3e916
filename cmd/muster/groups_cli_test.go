package main

import (
	"strings"
	"testing"
)

func TestGroupsCommandsHaveHelpWithExamples(t *testing.T) {
	s := &shell{t: t}
	says(t, s.run().ok(), "groups ")
	for _, line := range []string{
		"groups", "groups list", "groups describe", "groups explain", "groups history", "groups reset", "groups delete",
		"groups members", "groups members remove", "groups migrate",
	} {
		says(t, s.run(append(strings.Fields(line), "--help")...).ok(), "Examples:\n  muster "+line)
	}
}

func TestWrongGroupsCommandLinesExitWithCode2(t *testing.T) {
	s := &shell{t: t}
	for line, want := range map[string]string{
		"groups lits":                                           `muster groups has no command "lits"; did you mean "list"?`,
		"groups list (":                                         "is no regular expression",
		"groups list a --filter b":                              "as argument or with --filter, not both",
		"groups list --sort x":                                  `--sort is name, lag or members, not "x"`,
		"groups list --limit -1":                                "--limit cannot be negative",
		"groups describe":                                       "give the name of a group",
		"groups explain":                                        "give the name of a group",
		"groups explain a b":                                    "give the name of one group, not 2",
		"groups explain a --since x":                            `--since takes how long to look back, as 30m, 24h or 7d, not "x"`,
		"groups explain a --since -1h":                          "--since takes how long to look back",
		"groups history a --limit -1":                           "--limit cannot be negative",
		"groups reset a --topic t":                              "say where to: --to-earliest",
		"groups reset a --to-earliest":                          "say which topics: --topic NAME, or --all-topics",
		"groups reset a --topic t --all-topics":                 "--all-topics and --topic cannot be used together",
		"groups reset a --to-earliest --to-latest --all-topics": "--to-earliest and --to-latest cannot be used together",
		"groups reset a --all-topics --to-offset -1":            "--to-offset cannot be negative",
		"groups reset a --all-topics --to-timestamp x":          `"x" is no time`,
		"groups reset a --to-latest --topic t:x":                `--topic takes the name of a topic, or topic:0,2 for some of its partitions, not "t:x"`,
		"groups reset a --to-latest --topic t:":                 "--topic takes",
		"groups reset a --to-latest --topic :1":                 "--topic takes",
		"groups reset a --to-latest --topic t:1 --topic t:2":    "--topic names t twice",
		"groups delete a":                                       "add --yes",
		"groups migrate a":                                      "give --dry-run",
		"groups migrate --dry-run":                              "give the name of a group",
		"groups members remove a":                               "give the id of a member",
		"groups members remove a --all --member x":              "--all and --member cannot be used together",
		"groups members remove a --instance-id=":                "give the id of a member",
	} {
		r := s.run(strings.Fields(line)...).fails(exitUsage, want, "--help' for its usage.")
		same(t, line+": stdout", r.stdout, "")
	}
}

func TestGroupsCommandsSayThatNoBrokerAnswers(t *testing.T) {
	s := &shell{t, freeAddress(t)}
	for _, line := range []string{
		"groups list", "groups describe a", "groups explain a", "groups history a", "groups reset a --all-topics --to-latest",
		"groups delete a -y", "groups members remove a --all", "groups migrate a --dry-run",
	} {
		s.run(strings.Fields(line)...).fails(exitFailed, "no broker answers at "+s.broker)
	}
}

func TestCompletionOffersGroups(t *testing.T) {
	s := newGroupShell(t)
	s.run("topics", "create", "orders", "-p", "2").ok()
	static, instance := s.rawMember("billing", patience, "orders"), "worker-7"
	static.instance = &instance
	static.mustJoin()
	commit(t, s.client(), "bulk", "orders", 0)
	complete := func(args ...string) string {
		return (&shell{t: t}).run(append([]string{"__complete"}, args...)...).ok()
	}
	for _, command := range []string{"describe", "explain", "history", "reset", "delete", "members remove"} {
		args := append(append([]string{"groups"}, strings.Fields(command)...), "-b", s.broker, "b")
		same(t, command, complete(args...), "billing\nbulk\n:4\n")
	}
	same(t, "a second group", complete("groups", "describe", "-b", s.broker, "bulk", ""), "billing\n:4\n")
	same(t, "a second group for explain", complete("groups", "explain", "-b", s.broker, "bulk", ""), ":4\n")
	same(t, "no broker", complete("groups", "explain", "-b", freeAddress(t), ""), ":4\n")
	same(t, "--instance-id", complete("groups", "members", "remove", "-b", s.broker, "billing", "--instance-id", ""), "worker-7\n:4\n")
	same(t, "--member", complete("groups", "members", "remove", "-b", s.broker, "billing", "--member", "w"), static.id+"\n:4\n")
	same(t, "--topic", complete("groups", "reset", "-b", s.broker, "billing", "--topic", "o"), "orders\n:4\n")
	same(t, "--state", complete("groups", "list", "--state", ""), "Stable\nEmpty\nPreparingRebalance\nCompletingRebalance\nAssigning\nReconciling\n:4\n")
}
