package files

import (
	"context"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
)

// A snapshot never reads a submodule. Which commit there is of one counts only as the newest commit
// in the work tree names it: a move that nobody has committed is left out.

// Gitlink is the mode of a submodule.
const Gitlink = "160000"

func (d difference) isLink() bool { return d.mode == Gitlink || d.was == Gitlink }

// leaveUnknown leaves out the barred files that the user's git does not track, and the repositories
// within that the newest commit in the work tree does not name as they are.
func (c *changes) leaveUnknown(ctx context.Context, g git, s Spec, barred []string) error {
	if len(barred)+len(c.links) == 0 {
		return nil
	}
	user, err := newGit(g.env, s.Root)
	if err != nil {
		return err
	}
	user.pipes = g.pipes
	if len(barred) > 0 {
		out, _ := user.run(ctx, nil, "ls-files", "-z") // nothing: it cannot tell
		tracked := fields(out)                         // sorted
		for _, path := range barred {
			if _, is := slices.BinarySearch(tracked, path); is {
				c.put = append(c.put, path)
			} else {
				c.leave(path)
			}
		}
	}
	if len(c.links) > 0 {
		left, err := user.status(ctx, c.links...)
		if err != nil {
			left = c.links // git cannot tell
		}
		for _, path := range left {
			c.leave(path)
		}
	}
	return ctx.Err()
}

// status are the paths that differ from the newest commit, below some paths; none: all.
func (g git) status(ctx context.Context, below ...string) (paths []string, err error) {
	args := []string{"status", "--porcelain", "-z", "--no-renames", "--untracked-files=normal", "--ignore-submodules=dirty", "--"}
	out, err := g.run(ctx, nil, append(args, below...)...)
	for _, entry := range fields(out) {
		paths = append(paths, entry[min(len(entry), len("XY ")):])
	}
	return paths, err
}

// Status are the paths that differ from the newest commit of a work tree, below some; none: all.
func (r Repo) Status(ctx context.Context, below ...string) ([]string, error) {
	g, err := r.user(ctx)
	if err != nil {
		return nil, err
	}
	g.dir = r.Root
	return g.status(ctx, below...)
}

// Ask runs a git command that only looks, in a git directory; "": in the work tree.
func (r Repo) Ask(ctx context.Context, dir string, stdin []byte, args ...string) ([]byte, error) {
	if dir == "" {
		g, err := r.user(ctx)
		if err != nil {
			return nil, err
		}
		if g.dir = r.Root; args[0] == "check-ignore" { // it has no literal paths
			g.env = slices.DeleteFunc(slices.Clone(g.env), func(entry string) bool { return strings.HasPrefix(entry, "GIT_LITERAL_PATHSPECS=") })
		}
		return g.run(ctx, stdin, args...)
	}
	g, err := newGit(r.env.Environ, dir)
	if err != nil {
		return nil, err
	}
	return g.in(dir, dir, "").run(ctx, stdin, args...) // the work tree that its config names may be gone
}

// Modules is the file that says where submodules come from.
const Modules = ".gitmodules"

// WithLinksOf is a state of the files with the submodules that a commit names, in the place of
// its own; what says where they come from, too, if one of those is among the paths that were left
// out. apart are the paths where that differs.
func (r Repo) WithLinksOf(
	ctx context.Context, s Spec, tree protocol.Tree, commit string, left ...string,
) (with protocol.Tree, apart []string, err error) {
	g, err := inStore(r.env, s.Git)
	if err != nil {
		return "", nil, err
	}
	named, err := r.TreeOf(ctx, s, commit)
	if err != nil {
		return "", nil, err
	}
	plan, err := g.differing(ctx, tree, named)
	for _, d := range plan {
		switch {
		case d.isLink():
			apart = append(apart, d.path)
		case d.path == Modules && len(left) > 0:
			out, err := g.run(ctx, nil, append([]string{"ls-tree", sumOf(named), "--"}, left...)...)
			if err != nil {
				return "", nil, err
			}
			if strings.Contains("\n"+string(out), "\n"+Gitlink) {
				apart = append(apart, d.path)
			}
		}
	}
	if err != nil || len(apart) == 0 {
		return tree, nil, err
	}
	plan = slices.DeleteFunc(plan, func(d difference) bool { return !skipped(d.path, apart) })
	with, err = g.graft(ctx, s, tree, plan)
	return with, apart, err
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
