package files

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
)

// A snapshot never reads a submodule. The commit that it has of one is the one that the newest
// commit in the work tree names: a move that nobody has committed is left out.

const gitlink = "160000" // the mode of a submodule

func (d difference) isLink() bool { return d.mode == gitlink || d.was == gitlink }

// followLinks makes the index name the same commits of submodules as the newest commit in the
// work tree does. It reports whether the index has changed.
func (g git) followLinks(ctx context.Context, s Spec, paths []string) (moved bool, err error) {
	user, err := newGit(g.env, s.Root)
	if err != nil {
		return false, err
	}
	user.pipes = g.pipes
	head, err := user.run(ctx, nil, append([]string{"ls-tree", "-z", "HEAD", "--"}, paths...)...)
	if err != nil {
		return false, ctx.Err() // there is no commit yet
	}
	ours, err := g.run(ctx, nil, append([]string{"ls-files", "-s", "-z", "--"}, paths...)...)
	if err != nil {
		return false, err
	}
	want, have := map[string]string{}, map[string]string{}
	for _, entry := range fields(head) { // mode, kind, hash, a tab, path
		meta, path, _ := strings.Cut(entry, "\t")
		if words := strings.Fields(meta); len(words) == 3 && words[0] == gitlink {
			want[path] = words[2]
		}
	}
	for _, entry := range fields(ours) { // mode, hash, stage, a tab, path
		meta, path, _ := strings.Cut(entry, "\t")
		if words := strings.Fields(meta); len(words) == 3 && words[0] == gitlink {
			have[path] = words[1]
		}
	}
	var lines bytes.Buffer
	for _, path := range paths {
		switch {
		case want[path] == have[path]:
		case want[path] == "":
			fmt.Fprintf(&lines, "0 %s\t%s\x00", have[path], path)
		default:
			fmt.Fprintf(&lines, "%s %s\t%s\x00", gitlink, want[path], path)
		}
	}
	if lines.Len() == 0 {
		return false, nil
	}
	_, err = g.run(ctx, lines.Bytes(), "update-index", "--replace", "-z", "--index-info")
	return true, err
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
