package cli

import (
	"fmt"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/suggest"
)

// formatFlag is --format of a command whose result has forms of its own. It
// stands in for the global flag, so its names must hold all that make sense.
func formatFlag(names []string, otherwise string) ucli.Flag {
	return &ucli.StringFlag{
		Name: "format", Usage: fmt.Sprintf("`FORMAT` of the result: %s (default: %s)", strings.Join(names, ", "), otherwise),
	}
}

// ownFormat reads the flag of [formatFlag]; "" means that it was not given. A
// name that the whole program knows holds for errors, too; with any other, an
// error is text.
func (a *app) ownFormat(c *ucli.Context, names []string) (string, error) {
	name := c.String("format")
	if name == "" && c.Bool("json") {
		name = string(render.JSON)
	}
	if name == "" {
		return "", nil
	}
	if f, err := render.ParseFormat(name); err == nil && slices.Contains(names, string(f)) {
		a.flags.format = string(f)
		return string(f), nil
	}
	a.textErrors = true
	if slices.Contains(names, name) {
		return name, nil
	}
	hints := []string{"one of " + strings.Join(names, ", ")}
	if near := suggest.Nearest(name, names, 1); len(near) > 0 {
		hints = append([]string{"did you mean --format " + near[0] + "?"}, hints...)
	}
	return "", &protocol.Error{
		Code: protocol.CodeUsage, Message: fmt.Sprintf("unknown format %q", name), Hints: hints,
	}
}
