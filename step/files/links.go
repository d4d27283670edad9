package files

import (
	"context"
	"slices"

	"github.com/united-workforce/uwf/protocol"
)

// A snapshot never reads a submodule. Which commit there is of one counts only as the newest commit
// in the work tree names it: a move that nobody has committed is left out.

const gitlink = "160000" // the mode of a submodule

func (d difference) isLink() bool { return d.mode == gitlink || d.was == gitlink }

// leaveLinks leaves out the repositories within that the newest commit in the work tree does not name as
// they are.
func (c *changes) leaveLinks(ctx context.Context, g git, s Spec) error {
	if len(c.links) == 0 {
		return nil
	}
	user, err := newGit(g.env, s.Root)
	if err != nil {
		return err
	}
	user.pipes = g.pipes
	args := []string{"status", "--porcelain", "-z", "--no-renames", "--untracked-files=normal", "--ignore-submodules=dirty", "--"}
	out, err := user.run(ctx, nil, append(args, c.links...)...)
	if err != nil { // git cannot tell
		for _, path := range c.links {
			c.leave(path)
		}
		return ctx.Err()
	}
	for _, entry := range fields(out) {
		c.leave(entry[min(len(entry), len("XY ")):])
	}
	return nil
}

// WithLinksOf is a state of the files with the submodules that a commit names, in the place of
// its own.
func (r Repo) WithLinksOf(ctx context.Context, s Spec, tree protocol.Tree, commit string) (protocol.Tree, error) {
	g, err := inStore(r.env, s.Git)
	if err != nil {
		return "", err
	}
	named, err := r.TreeOf(ctx, s, commit)
	if err != nil {
		return "", err
	}
	plan, err := g.differing(ctx, tree, named)
	if err != nil {
		return "", err
	}
	var links []string
	for _, d := range plan {
		if d.isLink() {
			links = append(links, d.path)
		}
	}
	if len(links) == 0 {
		return tree, nil
	}
	plan = slices.DeleteFunc(plan, func(d difference) bool { return !skipped(d.path, links) })
	return g.graft(ctx, s, tree, plan)
}

// Differing are the paths in which two states differ, apart from submodules; "" is one without
// files.
func (r Repo) Differing(ctx context.Context, s Spec, a, b protocol.Tree) ([]string, error) {
	if a == b {
		return nil, nil
	}
	g, err := inStore(r.env, s.Git)
	if err != nil {
		return nil, err
	}
	if a, b, err = g.known(ctx, a, b); err != nil {
		return nil, err
	}
	list, err := g.differing(ctx, a, b)
	return names(slices.DeleteFunc(list, difference.isLink)), err
}
