package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/worktree"
)

// Whoever removes a worktree asks first what it has that exists nowhere else: [Repo.Inspect]
// reads the facts, and [Decide] decides. What git ignores may go, except a repository with work.

// Work is what git knows of a worktree, or of a repository within one.
type Work struct {
	Path      string // below the root of the worktree; "": the worktree itself
	Submodule bool
	Files     []string // that differ from the newest commit; of the worktree itself only if asked for
	Unseen    []string // directories that git or the user cannot look into
	Commits   []string // that no ref leads to which stays: a short name and the subject
	Operation string   // that was begun and not finished
	Unknown   bool     // git cannot tell
}

// OnlyHere is what a worktree has that exists nowhere else.
type OnlyHere struct {
	Files        []string // that are not committed
	Left         []string // that no snapshot takes
	Submodules   []string // with files, commits or a move that is not committed
	Repositories []string
	Commits      []string
	Operation    string
}

// None reports whether there is nothing.
func (o OnlyHere) None() bool { return o.String() == "" }

// String names each kind and its first paths.
func (o OnlyHere) String() string {
	var kinds []string
	for _, kind := range []struct {
		name  string
		paths []string
	}{
		{"files that are not committed", o.Files},
		{"files that no snapshot has", o.Left},
		{"work in submodules", o.Submodules},
		{"repositories", o.Repositories},
		{"commits that are on no branch", o.Commits},
	} {
		if len(kind.paths) > 0 {
			kinds = append(kinds, kind.name+": "+some(kind.paths))
		}
	}
	if o.Operation != "" {
		kinds = append(kinds, "an unfinished "+o.Operation)
	}
	return strings.Join(kinds, "; ")
}

// Decide sorts what was found: edited are files whose state is kept nowhere else, and left are
// paths that no snapshot takes.
func Decide(edited, left []string, all []Work) (o OnlyHere) {
	if len(all) > 0 { // the worktree itself
		edited, left = slices.Concat(edited, all[0].Files), slices.Concat(all[0].Unseen, left)
		o.Commits, o.Operation, all = all[0].Commits, all[0].Operation, all[1:]
	}
	within := map[string]bool{}
	for _, w := range all {
		within[w.Path] = true
		has := w.Unknown || w.Operation != "" || len(w.Files)+len(w.Unseen)+len(w.Commits) > 0 ||
			slices.Contains(left, w.Path) || slices.Contains(edited, w.Path)
		switch {
		case has && w.Submodule:
			o.Submodules = append(o.Submodules, w.Path)
		case has:
			o.Repositories = append(o.Repositories, w.Path)
		}
	}
	others := func(paths []string) []string {
		paths = slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return within[path] })
		slices.Sort(paths)
		return slices.Compact(paths)
	}
	o.Files, o.Left = others(edited), others(left)
	return o
}

// Bounds of an inspection.
const (
	maxWalked = 2_000_000 // files, many times what a large worktree holds
	maxWithin = 500       // repositories: each takes a few git processes
	maxReflog = 16 << 20  // bytes
	maxNamed  = 6         // commits: one more than are named
)

// Inspect finds what is only in a work tree, besides the state of its own files: these count
// if status is set. base is the commit that it began with; "": not known.
func (r Repo) Inspect(ctx context.Context, base string, status bool) ([]Work, error) {
	nested, unseen, err := r.within(ctx)
	if err != nil {
		return nil, err
	}
	in := inspection{top: r, known: map[string]string{"": base}}
	all := make([]Work, 0, 1+len(nested))
	for _, at := range append([]string{""}, nested...) {
		w, err := in.look(ctx, at, status)
		if err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	detached, err := in.detached(ctx)
	if err != nil {
		return nil, err
	}
	all = append(all, detached...)
	all[0].Unseen = append(all[0].Unseen, unseen...)
	return all, nil
}

// within finds the repositories below the root, outer ones first, and directories that
// cannot be read.
func (r Repo) within(ctx context.Context) (nested, unseen []string, err error) {
	n := 0
	err = filepath.WalkDir(r.Root, func(at string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(r.Root, at)
		rel = filepath.ToSlash(rel)
		switch n++; {
		case ctx.Err() != nil || relErr != nil:
			return errors.Join(ctx.Err(), relErr)
		case n > maxWalked:
			return &RefusedError{Dir: r.Root, Reason: fmt.Sprintf("holds more than %d files", maxWalked)}
		case errors.Is(err, fs.ErrNotExist): // gone meanwhile
		case err != nil:
			unseen = append(unseen, rel)
		case d.Name() == ".git" && rel != ".git":
			if looksLikeRepo(at) {
				nested = append(nested, path.Dir(rel))
			}
			if len(nested) > maxWithin {
				return &RefusedError{Dir: r.Root, Reason: fmt.Sprintf("holds more than %d repositories", maxWithin)}
			}
		}
		if d != nil && d.IsDir() && d.Name() == ".git" {
			return fs.SkipDir
		}
		return nil
	})
	slices.Sort(nested)
	return nested, unseen, err
}

// looksLikeRepo tells a .git from a file or directory that is only called so.
func looksLikeRepo(at string) bool {
	git, _, ok := worktree.Dirs(filepath.Dir(at))
	if !ok {
		return false
	}
	_, err := os.Lstat(filepath.Join(git, "HEAD"))
	return err == nil
}

// inspection is one that is under way.
type inspection struct {
	top Repo
	// known has, by the path of a repository, a commit of it that exists elsewhere; "": none.
	known map[string]string
	links []string // paths of gitlinks, of all repositories
	seen  []string // git directories
}

// detached looks into the git directories of submodules that are not checked out any more.
func (in *inspection) detached(ctx context.Context) (all []Work, err error) {
	modules := filepath.Join(in.top.Dir, "modules")
	err = filepath.WalkDir(modules, func(at string, d fs.DirEntry, err error) error {
		dir := filepath.Dir(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return ctx.Err()
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "objects" && !isGone(filepath.Join(dir, "HEAD")):
			return fs.SkipDir
		case d.Name() != "HEAD" || d.IsDir() || slices.Contains(in.seen, dir) || isGone(filepath.Join(dir, "objects")):
			return ctx.Err()
		case len(all) > maxWithin:
			return &RefusedError{Dir: modules, Reason: fmt.Sprintf("holds more than %d repositories", maxWithin)}
		}
		rel, err := filepath.Rel(modules, dir)
		if err != nil {
			return err
		}
		w := Work{Path: strings.ReplaceAll(filepath.ToSlash(rel), "/modules/", "/"), Submodule: true}
		known, err := in.elsewhere(ctx, w.Path)
		if err != nil {
			return err
		}
		g, err := newGit(in.top.env.Environ, dir)
		if err != nil {
			return err
		}
		if w.Commits, err = (Repo{Dir: dir, Common: dir}).unreached(ctx, g.in(dir, "", ""), true, known); err != nil {
			w.Unknown = true
		}
		all = append(all, w)
		return ctx.Err()
	})
	return all, err
}

func (in *inspection) look(ctx context.Context, at string, status bool) (Work, error) {
	w, r := Work{Path: at, Submodule: slices.Contains(in.links, at)}, in.top
	if at != "" {
		var err error
		if r, err = Find(ctx, r.env, filepath.Join(r.Root, filepath.FromSlash(at))); err != nil {
			w.Unknown = true
			return w, ctx.Err()
		}
		in.seen = append(in.seen, r.Dir)
		if in.known[at], err = in.elsewhere(ctx, at); err != nil {
			return w, err
		}
	}
	g, err := r.user(ctx)
	if err != nil {
		return w, err
	}
	g.dir = r.Root
	if w.Unseen, err = in.gitlinks(ctx, g, r.Root, at); err != nil {
		return w, err
	}
	if at != "" || status {
		out, err := g.run(ctx, nil, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=normal", "--ignore-submodules=dirty")
		if err != nil {
			return w, err
		}
		for _, entry := range fields(out) {
			w.Files = append(w.Files, entry[min(len(entry), len("XY ")):])
		}
	}
	w.Operation = r.Unfinished()
	if w.Commits, err = r.unreached(ctx, g, in.goes(r.Common), in.known[at]); err != nil {
		return w, err
	}
	if at != "" && len(w.Commits) == 0 {
		in.known[at] = r.Head
	}
	return w, nil
}

// goes reports whether a git directory goes with the worktree.
func (in *inspection) goes(dir string) bool {
	for _, of := range []string{in.top.Root, in.top.Dir} {
		if rel, err := filepath.Rel(of, dir); err == nil && filepath.IsLocal(rel) && of != in.top.Common {
			return true
		}
	}
	return false
}

// elsewhere is the commit of a submodule that the repository around it names in a commit which
// exists elsewhere; "": there is none.
func (in *inspection) elsewhere(ctx context.Context, at string) (string, error) {
	around := path.Dir(at)
	for ; around != "."; around = path.Dir(around) {
		if _, ok := in.known[around]; ok {
			break
		}
	}
	rel := at
	if around == "." {
		around = ""
	} else {
		rel = strings.TrimPrefix(at, around+"/")
	}
	if in.known[around] == "" {
		return "", nil
	}
	g, err := newGit(in.top.env.Environ, filepath.Join(in.top.Root, filepath.FromSlash(around)))
	if err != nil {
		return "", err
	}
	commit, err := g.line(ctx, "rev-parse", "-q", "--verify", "--end-of-options", in.known[around]+":"+rel)
	if err != nil {
		return "", ctx.Err() // it is no submodule there
	}
	return commit, nil
}

// gitlinks notes the submodules of a repository. It returns those that are not checked out and
// hold files all the same: git overlooks these.
func (in *inspection) gitlinks(ctx context.Context, g git, root, at string) (unseen []string, err error) {
	out, err := g.run(ctx, nil, "ls-files", "-s", "-z")
	if err != nil {
		return nil, err
	}
	for _, entry := range fields(out) {
		meta, name, _ := strings.Cut(entry, "\t")
		if !strings.HasPrefix(meta, gitlink) {
			continue
		}
		in.links = append(in.links, path.Join(at, name))
		dir := filepath.Join(root, filepath.FromSlash(name))
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			continue
		}
		if files, err := os.ReadDir(dir); err == nil && len(files) > 0 {
			unseen = append(unseen, path.Join(at, name))
		}
	}
	return unseen, nil
}

// unreached are commits made in a work tree to which no ref leads that stays. If the whole
// repository goes, those that were fetched stay at the remote; so does the one that is known.
func (r Repo) unreached(ctx context.Context, g git, goes bool, known string) ([]string, error) {
	been, without, err := r.leftBehind()
	if err != nil {
		return nil, err
	}
	if goes {
		without = append(without, r.packedTags()...)
	}
	var revs bytes.Buffer
	for _, commit := range append(been, r.Head) {
		if commit != "" {
			revs.WriteString(commit + "\n")
		}
	}
	for _, commit := range append(without, known) {
		if commit != "" {
			revs.WriteString("^" + commit + "\n")
		}
	}
	args := []string{"rev-list", "--ignore-missing", fmt.Sprint("--max-count=", maxNamed), "--oneline", "--stdin"}
	if goes {
		args = append(args, "--all", "--not", "--remotes")
	} else {
		own, err := g.run(ctx, nil, "for-each-ref", "--format=%(objectname)", "refs/worktree")
		if err != nil {
			return nil, err
		}
		revs.Write(own)
		g = g.in(r.Common, "", "") // without the refs of the work tree
		g.dir = r.Common
		args = append(args, "--not", "--single-worktree", "--all")
	}
	if revs.Len() == 0 && !goes {
		return nil, nil
	}
	out, err := g.run(ctx, revs.Bytes(), args...)
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' }), err
}

// packedTags are those that came with a clone: git packs these at once.
func (r Repo) packedTags() (commits []string) {
	text, err := careful.ReadFile(filepath.Join(r.Common, "packed-refs"), maxSetting, careful.NoFollow)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		if commit, ref, _ := strings.Cut(line, " "); strings.HasPrefix(ref, "refs/tags/") {
			commits = append(commits, commit)
		}
	}
	return commits
}

// leftBehind are the commits at which a work tree has been, by its reflog, and those among
// them that git has replaced itself, as in an amendment or a rebase.
func (r Repo) leftBehind() (commits, replaced []string, err error) {
	text, err := careful.ReadFile(filepath.Join(r.Dir, "logs", "HEAD"), maxReflog, careful.NoFollow)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	isReplaced := map[string]bool{}                 // by all that has been there
	for line := range strings.Lines(string(text)) { // old, new, who and when, a tab, why
		refs, why, _ := strings.Cut(line, "\t")
		words := strings.Fields(refs)
		if len(words) < 2 || strings.Trim(words[0]+words[1], "0123456789abcdef") != "" {
			continue
		}
		if strings.HasPrefix(why, "commit (amend)") || strings.HasPrefix(why, "rebase") {
			isReplaced[words[0]] = true
		}
		isReplaced[words[1]] = false
	}
	for commit, is := range isReplaced {
		if is {
			replaced = append(replaced, commit)
		} else {
			commits = append(commits, commit)
		}
	}
	return commits, replaced, nil
}
