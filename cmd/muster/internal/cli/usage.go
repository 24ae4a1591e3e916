package cli

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"muster/internal/words"
)

// FlagError words what package pflag finds wrong with flags.
func FlagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	var empty *pflag.ValueRequiredError
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		if near := words.Nearest(unknown.GetSpecifiedName(), known); near != "" {
			return Usagef("%s has no flag --%s; did you mean --%s?", cmd.CommandPath(), unknown.GetSpecifiedName(), near)
		}
		return Usagef("%s has no flag --%s", cmd.CommandPath(), unknown.GetSpecifiedName())
	case errors.As(err, &unknown):
		return Usagef("%s has no flag -%s", cmd.CommandPath(), unknown.GetSpecifiedName())
	case errors.As(err, &invalid):
		return Usagef("--%s takes %s, not %q", invalid.GetFlag().Name, takes(invalid.GetFlag()), invalid.GetValue())
	case errors.As(err, &empty):
		return Usagef("--%s takes %s, and has none", empty.GetFlag().Name, takes(empty.GetFlag()))
	}
	return err
}

// CheckHelp refuses help about commands that do not exist.
func CheckHelp(cmd *cobra.Command, args []string) error {
	about, rest, err := cmd.Root().Find(args)
	if err != nil || !about.HasSubCommands() {
		return err
	}
	return SubcommandArgs(about, rest)
}

// takes says what the value of a flag looks like.
func takes(f *pflag.Flag) string {
	switch t := f.Value.Type(); {
	case strings.HasPrefix(t, "int"), strings.HasPrefix(t, "uint"), t == "count":
		return "a whole number"
	case strings.HasPrefix(t, "float"):
		return "a number"
	case t == "duration":
		return "a duration such as 500ms, 10s or 5m"
	case t == "bool":
		return "true or false"
	}
	return "a value"
}

// countError is what package cobra says of the number of arguments.
var countError = regexp.MustCompile(`^(?:accepts|requires) .*arg\(s\), (?:only )?received (\d+)$|^unknown command `)

// togetherError is what package cobra says of flags that exclude each other.
var togetherError = regexp.MustCompile(`none of the others can be; \[(.+)\] were all set$`)

// ArgumentError words what package cobra finds wrong with the number of arguments, and with
// flags that exclude each other.
func ArgumentError(cmd *cobra.Command, err error) error {
	if found := togetherError.FindStringSubmatch(err.Error()); found != nil {
		return Usagef("%s cannot be used together", words.List(strings.Fields("--"+strings.ReplaceAll(found[1], " ", " --"))))
	}
	found := countError.FindStringSubmatch(err.Error())
	if found == nil {
		return err
	}
	_, usage, _ := strings.Cut(cmd.Use, " ")
	switch {
	case usage == "":
		return fmt.Errorf("%s takes no arguments", cmd.CommandPath())
	case found[1] == "0":
		return fmt.Errorf("%s needs an argument: %s", cmd.CommandPath(), usage)
	}
	return fmt.Errorf("%s takes other arguments: %s", cmd.CommandPath(), usage)
}
