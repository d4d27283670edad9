package files

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/lazyregexp"
)

// Version is that of git.
type Version struct {
	Text         string
	Major, Minor int
}

// AtLeast reports whether it is a version, or a newer one.
func (v Version) AtLeast(major, minor int) bool {
	return v.Major > major || v.Major == major && v.Minor >= minor
}

var versionText = lazyregexp.New(`(\d+)\.(\d+)\S*`)

// GitVersion asks git for its version. dir is where git itself is not looked for.
func GitVersion(ctx context.Context, e env.Env, dir string) (Version, error) {
	g, err := newGit(e.Environ, dir)
	if err != nil {
		return Version{}, err
	}
	out, err := g.line(ctx, "version")
	if err != nil {
		return Version{}, err
	}
	found := versionText().FindStringSubmatch(out)
	if found == nil {
		return Version{}, fmt.Errorf("git says that its version is %q", out)
	}
	v := Version{Text: found[0]}
	v.Major, _ = strconv.Atoi(found[1]) // digits
	v.Minor, _ = strconv.Atoi(found[2])
	return v, nil
}

// Survey says what a snapshot of a work tree would not keep, and why. It changes
// nothing.
func (r Repo) Survey(ctx context.Context, s Spec) ([]string, error) {
	g, err := r.user(ctx)
	if err != nil {
		return nil, err
	}
	g.dir = r.Root
	tracked, err := g.run(ctx, nil, "ls-files", "-s", "-z")
	if err != nil {
		return nil, err
	}
	others, err := g.run(ctx, nil, "ls-files", "-o", "--exclude-standard", "-z")
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(r.Root)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	var notes []string
	c := &changes{}
	for _, entry := range fields(tracked) {
		if meta, path, ok := strings.Cut(entry, "\t"); ok && strings.HasPrefix(meta, Gitlink) {
			c.leave(path)
		}
	}
	if len(c.left) > 0 {
		notes = append(notes, "submodules: "+Some(c.left))
	}
	c = &changes{}
	if barred, err := c.untracked(root, fields(others), s); err != nil {
		notes = append(notes, err.Error())
	} else if left := slices.Concat(c.left, barred, c.links); len(left) > 0 {
		notes = append(notes, "too large, repositories within, or not readable: "+Some(left))
	}
	if _, sparse := r.key("core.sparsecheckout"); sparse {
		notes = append(notes, "what a sparse checkout leaves out stays as git has it")
	}
	if r.Partial {
		notes = append(notes, "the clone is partial: what was never fetched cannot be put back or exported")
	}
	return append(notes, r.largeFiles()...), nil
}

// largeFiles says what becomes of files that git-lfs keeps.
func (r Repo) largeFiles() []string {
	switch {
	case r.LacksLFS():
		return []string{"files of git-lfs are kept as pointers: git-lfs is not installed"}
	case r.usesLFS():
		return []string{"the content of files of git-lfs lies in .git/lfs, which git lfs prune may empty"}
	}
	return nil
}

func (r Repo) usesLFS() bool {
	text, err := careful.ReadFile(filepath.Join(r.Root, ".gitattributes"), maxSetting, careful.NoFollow)
	return err == nil && strings.Contains(string(text), "filter=lfs")
}

// LacksLFS reports whether the repository has files of git-lfs, and git-lfs is not installed: these
// files are pointers.
func (r Repo) LacksLFS() bool { return r.usesLFS() && !hasLFS(r.env.Environ, r.Root) }
