// Package cmdline is what the command lines of our programs have in common: flags
// before and behind arguments, arguments held against the usage, errors with a
// code and the next command to type, text for people and JSON for programs.
package cmdline

import "strings"

// FormatIn finds --format in a command line that could not be parsed, so that
// its error has the right form.
func FormatIn(args []string) string {
	for i, arg := range args {
		if v, ok := strings.CutPrefix(arg, "--format="); ok {
			return v
		}
		if arg == "--json" {
			return "json"
		}
		if arg == "--format" && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}
