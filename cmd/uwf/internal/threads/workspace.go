package threads

import (
	"cmp"
	"context"
	"slices"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/workspace"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/plaintext"
)

// workspaceFlag is that of commands that start a thread.
func workspaceFlag() ucli.Flag {
	return &ucli.StringFlag{Name: "workspace", Usage: "how the files are kept, a `MODE`: in-place (a snapshot with each step; the default in a git work tree), worktree (likewise, in a git worktree of the thread's own) or none"}
}

// treeFlags are those of the worktree of a new thread.
func treeFlags() []ucli.Flag {
	return []ucli.Flag{
		workspaceFlag(),
		&ucli.StringFlag{Name: "base", Usage: "the `COMMIT` at which the worktree starts (default: HEAD)"},
		&ucli.BoolFlag{Name: "dirty", Usage: "copy uncommitted changes into the worktree"},
	}
}

// workspaceModes are those that a person can name.
func workspaceModes() []string {
	return []string{workspace.ModeInPlace, workspace.InWorktree, workspace.AsItIs}
}

// workspaceOptions are those of the flags.
func workspaceOptions(c *ucli.Context) (workspace.Options, error) {
	mode := cmp.Or(c.String("workspace"), workspace.ByDefault)
	if mode == workspace.InPlace { // its name before the first release
		return workspace.Options{}, cmdline.UsageError("--workspace "+mode+" is not a way to keep files", "it is --workspace "+workspace.ModeInPlace+" now")
	}
	if c.IsSet("workspace") && !slices.Contains(workspaceModes(), mode) {
		return workspace.Options{}, cmdline.UsageError("--workspace "+mode+" is not a way to keep files", cmdline.DidYouMean("--workspace ", mode, workspaceModes())...)
	}
	o := workspace.Options{Mode: mode, Base: c.String("base"), Dirty: c.Bool("dirty")}
	if (o.Base != "" || o.Dirty) && mode != workspace.InWorktree {
		return o, cmdline.UsageError("--base and --dirty are for a worktree", "--workspace worktree")
	}
	if o.Base != "" && o.Dirty {
		return o, cmdline.UsageError("--base and --dirty exclude each other", "what is not committed belongs to HEAD")
	}
	return o, nil
}

// sayWorktree says where the worktree of a new thread is.
func (a Commands) sayWorktree(ctx context.Context, e *engine.Engine, id string) {
	facts, err := e.Heads.Facts(ctx, id)
	if w := facts.Workspace; err == nil && w != nil && w.Mode == workspace.InWorktree {
		at := w.Base[:min(len(w.Base), 10)]
		if w.Branch != "" {
			at = "branch " + w.Branch + " at " + at
		}
		a.Say("worktree %s, %s", plaintext.Line(w.Root), plaintext.Line(at))
	}
}
