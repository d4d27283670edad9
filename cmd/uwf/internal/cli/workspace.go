package cli

import (
	"cmp"
	"slices"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/util/cmdline"
)

// workspaceFlag is that of commands that start a thread.
func workspaceFlag() ucli.Flag {
	return &ucli.StringFlag{Name: "workspace", Usage: "how the files are kept, a `MODE`: here (a snapshot with each step; the default in a git work tree) or none"}
}

// workspaceModes are those that a person can name.
func workspaceModes() []string { return []string{engine.InPlace, engine.AsItIs} }

// workspaceOptions are those of the flags.
func workspaceOptions(c *ucli.Context) (engine.WorkspaceOptions, error) {
	mode := cmp.Or(c.String("workspace"), engine.ByDefault)
	if c.IsSet("workspace") && !slices.Contains(workspaceModes(), mode) {
		return engine.WorkspaceOptions{}, usageError("--workspace "+mode+" is no way to keep files", cmdline.DidYouMean("--workspace ", mode, workspaceModes())...)
	}
	return engine.WorkspaceOptions{Mode: mode}, nil
}
