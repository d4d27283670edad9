package cmdline

import (
	"fmt"
	"regexp"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/util/suggest"
)

// flagError says what package flag has to say about a flag in our words, with
// the names of flags among known that may have been meant. Other texts stay.
func flagError(text string, known []string) (message string, hints []string) {
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
		if near := suggest.Nearest(strings.TrimLeft(name, "-"), known, 1); len(near) > 0 {
			hints = append(hints, "did you mean "+dashes(near[0])+"?")
		}
		return "unknown flag " + dashes(strings.TrimLeft(name, "-")), hints
	}
	if name, ok := strings.CutPrefix(text, "flag needs an argument: -"); ok {
		return fmt.Sprintf("flag %s needs a value", dashes(strings.TrimLeft(name, "-"))), nil
	}
	// Compiled here, since hardly any run needs it.
	boolean := regexp.MustCompile(`^invalid boolean value (".*") for -(\S+): parse error$`)
	if m := boolean.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("flag %s takes no value but true and false, got %s", dashes(strings.TrimLeft(m[2], "-")), m[1]), nil
	}
	return text, nil
}

func flagNames(flags []ucli.Flag) []string {
	var names []string
	for _, f := range flags {
		names = append(names, f.Names()...)
	}
	return names
}
