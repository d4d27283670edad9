package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/step/snapshot"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/gitdir"
	"github.com/united-workforce/uwf/util/safeopen"
)

// What a worktree has that exists nowhere else is found before it is removed: [Inspect] reads the facts,
// and [Decide] decides. What git ignores may go, except a repository with work.

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

// Found is what a worktree has that exists nowhere else.
type Found struct {
	Files        []string // that are not committed
	Left         []string // that no snapshot takes
	Submodules   []string // with files, commits or a move that is not committed
	Repositories []string
	Commits      []string
	Operation    string
}

// None reports whether there is nothing.
func (f Found) None() bool { return f.String() == "" }

// String names each kind and its first paths.
func (f Found) String() string {
	kinds := []string{"files that are not committed", "files that no snapshot has", "work in submodules",
		"repositories", "commits that are on no branch"}
	var found []string
	for i, paths := range [][]string{f.Files, f.Left, f.Submodules, f.Repositories, f.Commits} {
		if len(paths) > 0 {
			found = append(found, kinds[i]+": "+snapshot.Some(paths))
		}
	}
	if f.Operation != "" {
		found = append(found, "an unfinished "+f.Operation)
	}
	return strings.Join(found, "; ")
}

// Decide sorts what was found, that of the worktree itself first: edited are files whose state is
// kept nowhere else, and left are paths that no snapshot takes.
func Decide(edited, left []string, all []Work) (f Found) {
	edited, left = slices.Concat(edited, all[0].Files), slices.Concat(all[0].Unseen, left)
	f.Commits, f.Operation = all[0].Commits, all[0].Operation
	within := map[string]bool{}
	for _, w := range all[1:] {
		within[w.Path] = true
		has := w.Unknown || w.Operation != "" || len(w.Files)+len(w.Unseen)+len(w.Commits) > 0 ||
			slices.Contains(left, w.Path) || slices.Contains(edited, w.Path)
		switch {
		case has && w.Submodule:
			f.Submodules = append(f.Submodules, w.Path)
		case has:
			f.Repositories = append(f.Repositories, w.Path)
		}
	}
	isWithin := func(path string) bool { return within[path] }
	slices.Sort(left)
	f.Files, f.Left = slices.DeleteFunc(edited, isWithin), slices.Compact(slices.DeleteFunc(left, isWithin))
	return f
}

// Bounds of an inspection.
const (
	maxWalked = 2_000_000 // files, many times what a large worktree holds
	maxWithin = 500       // repositories: each takes a few git processes
	maxReflog = 16 << 20  // bytes
	maxRefs   = 1 << 20   // bytes
	maxNamed  = 6         // commits: one more than are named
)

// inspection is one that is under way.
type inspection struct {
	snapshot.Repo
	env    env.Env
	base   string   // commit that the worktree began with; "": not known
	trees  []string // paths of repositories within
	stores []string // git directories of submodules, until their trees are seen
	bare   []string // others without a work tree around them, likewise
	heads  []string // paths called HEAD that a repository tracks: examples, with what is beside them
	unseen []string // directories that cannot be read
	links  []string // paths of submodules
}

// Inspect finds what is only in a work tree, besides the state of its own files: these count
// if status is set. base is the commit that it began with; "": not known.
func Inspect(ctx context.Context, e env.Env, r snapshot.Repo, base string, status bool) ([]Work, error) {
	in := &inspection{Repo: r, env: e, base: base}
	modules := filepath.Join(r.Dir, "modules")
	for _, root := range []string{r.Root, modules} {
		if err := in.walk(ctx, root); err != nil {
			return nil, err
		}
	}
	slices.Sort(in.trees) // outer ones first
	var all []Work
	for _, at := range append([]string{""}, in.trees...) {
		w, err := in.look(ctx, at, status || at != "")
		if err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	for _, store := range in.stores { // not checked out any more
		from := modules
		if !strings.HasPrefix(store, modules) { // of a repository within
			from = in.Root
		}
		path := strings.NewReplacer("/.git/modules/", "/", "/modules/", "/").Replace(below(from, store))
		all = append(all, in.lookInto(ctx, store, Work{Path: path, Submodule: true}))
	}
	for _, store := range in.bare {
		if w := (Work{Path: below(in.Root, store)}); !slices.Contains(in.heads, path.Join(w.Path, "HEAD")) {
			all = append(all, in.lookInto(ctx, store, w))
		}
	}
	all[0].Unseen = append(all[0].Unseen, in.unseen...)
	return all, ctx.Err()
}

// lookInto looks into a git directory that has no work tree.
func (in *inspection) lookInto(ctx context.Context, store string, w Work) Work {
	var err error
	w.Commits, err = in.unreached(ctx, snapshot.Repo{Dir: store, Common: store}, w.Path)
	w.Unknown = err != nil
	return w
}

// below is the path of a file below a directory that it is in, with slashes.
func below(dir, file string) string {
	return filepath.ToSlash(strings.TrimPrefix(file[len(dir):], string(filepath.Separator)))
}

// walk finds the repositories below a directory.
func (in *inspection) walk(ctx context.Context, root string) error {
	n := 0
	return filepath.WalkDir(root, func(at string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(root, at)
		dir := filepath.Dir(at)
		switch n++; {
		case ctx.Err() != nil || relErr != nil:
			return errors.Join(ctx.Err(), relErr)
		case n > maxWalked || len(in.trees)+len(in.stores)+len(in.bare) > maxWithin:
			return &snapshot.RefusedError{Dir: root, Reason: fmt.Sprintf("holds more than %d files or %d repositories",
				maxWalked, maxWithin)}
		case err != nil && !missing(at):
			in.unseen = append(in.unseen, filepath.ToSlash(rel))
		case err != nil:
			return nil
		case rel == ".git": // its own
		case d.Name() == ".git":
			if git, _, ok := gitdir.Dirs(dir); ok && !missing(filepath.Join(git, "HEAD")) { // not only called so
				in.trees = append(in.trees, path.Dir(filepath.ToSlash(rel)))
			}
			if !d.IsDir() {
				return nil
			}
			if err := in.walk(ctx, filepath.Join(at, "modules")); err != nil {
				return err
			}
		case d.Name() != "HEAD" || d.IsDir() || missing(filepath.Join(dir, "objects")),
			missing(filepath.Join(dir, "refs")):
		case root == in.Root:
			in.bare = append(in.bare, dir)
		default:
			in.stores = append(in.stores, dir)
		}
		if d != nil && d.IsDir() && (d.Name() == ".git" || root != in.Root && d.Name() == "objects") {
			return fs.SkipDir
		}
		return nil
	})
}

// look looks into a work tree.
func (in *inspection) look(ctx context.Context, at string, status bool) (w Work, err error) {
	w, r := Work{Path: at, Submodule: slices.Contains(in.links, at)}, in.Repo
	if at != "" {
		if r, err = snapshot.Find(ctx, in.env, filepath.Join(r.Root, filepath.FromSlash(at))); err != nil {
			w.Unknown = true
			return w, ctx.Err()
		}
		isIts := func(store string) bool { return store == r.Dir }
		in.stores, in.bare = slices.DeleteFunc(in.stores, isIts), slices.DeleteFunc(in.bare, isIts)
	}
	if w.Unseen, err = in.gitlinks(ctx, r, at); err != nil {
		return w, err
	}
	if status {
		out, err := r.Status(ctx)
		if err != nil {
			return w, err
		}
		w.Files = out
	}
	w.Operation = r.Unfinished()
	w.Commits, err = in.unreached(ctx, r, at)
	return w, err
}

// gitlinks notes the submodules that a repository's index or newest commit names. It returns those
// that are not checked out and hold files all the same: git, or a snapshot, overlooks these.
func (in *inspection) gitlinks(ctx context.Context, r snapshot.Repo, at string) (unseen []string, err error) {
	out, err := in.Ask(ctx, r.Dir, nil, "ls-files", "-s", "-z")
	if err == nil && r.Head != "" {
		var tree []byte
		tree, err = in.Ask(ctx, r.Dir, nil, "ls-tree", "-r", "-z", r.Head)
		out = append(out, tree...)
	}
	for entry := range strings.SplitSeq(string(out), "\x00") {
		meta, name, _ := strings.Cut(entry, "\t")
		if path.Base(name) == "HEAD" {
			in.heads = append(in.heads, path.Join(at, name))
		}
		if !strings.HasPrefix(meta, snapshot.Gitlink) {
			continue
		}
		in.links = append(in.links, path.Join(at, name))
		dir := filepath.Join(r.Root, filepath.FromSlash(name))
		if within, err := os.ReadDir(dir); err == nil && len(within) > 0 && !slices.Contains(in.trees, path.Join(at, name)) {
			unseen = append(unseen, path.Join(at, name))
		}
	}
	return unseen, err
}

// goes reports whether a git directory goes with the worktree.
func (in *inspection) goes(dir string) bool {
	return slices.ContainsFunc([]string{in.Root, in.Dir}, func(of string) bool {
		rel, err := filepath.Rel(of, dir)
		return err == nil && filepath.IsLocal(rel) && of != in.Common
	})
}

// unreached are commits made in a work tree to which no ref leads that stays. If the whole
// repository goes, those that were fetched stay at the remote; so does the one with which all
// began, or that this one names for a submodule.
func (in *inspection) unreached(ctx context.Context, r snapshot.Repo, at string) ([]string, error) {
	been, without, err := leftBehind(r)
	if err != nil {
		return nil, err
	}
	own, err := in.Ask(ctx, r.Dir, nil, "for-each-ref", "--format=%(objectname)", "refs/worktree")
	if err != nil {
		return nil, err
	}
	known := []byte(in.base)
	if in.base != "" && at != "" {
		// none: no submodule
		known, _ = in.Ask(ctx, in.Dir, nil, "rev-parse", "-q", "--verify", "--end-of-options", in.base+":"+at)
	}
	args := []string{"rev-list", "--ignore-missing", fmt.Sprint("--max-count=", maxNamed), "--oneline", "--stdin"}
	git := r.Common // without the refs of the work tree
	if in.goes(r.Common) {
		of := "refs/tags/"
		if slices.Contains(in.bare, r.Dir) { // its branches, too
			of = "refs/"
		}
		git, without = r.Dir, append(without, packed(r, of)...)
		args = append(args, "--all", "--not", "--remotes")
	} else {
		args = append(args, "--not", "--single-worktree", "--all")
	}
	revs := slices.Concat(been, []string{r.Head}, strings.Fields(string(own)))
	for _, commit := range append(without, strings.TrimSpace(string(known))) {
		revs = append(revs, "^"+commit)
	}
	// git would read no further
	revs = slices.DeleteFunc(revs, func(rev string) bool { return strings.Trim(rev, "^") == "" })
	out, err := in.Ask(ctx, git, []byte(strings.Join(revs, "\n")), args...)
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' }), err
}

// packed are the commits of refs that came with a clone: git packs these at once.
func packed(r snapshot.Repo, prefix string) (commits []string) {
	text, err := safeopen.ReadFile(filepath.Join(r.Common, "packed-refs"), maxRefs, safeopen.NoFollow)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		if commit, ref, _ := strings.Cut(line, " "); strings.HasPrefix(ref, prefix) {
			commits = append(commits, commit)
		}
	}
	return commits
}

// leftBehind are the commits at which a work tree has been, by its reflog, and those among
// them that git has replaced itself, as in an amendment or a rebase.
func leftBehind(r snapshot.Repo) (commits, replaced []string, err error) {
	text, err := safeopen.ReadFile(filepath.Join(r.Dir, "logs", "HEAD"), maxReflog, safeopen.NoFollow)
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
		action, _, _ := strings.Cut(why, ":")
		if action == "commit (amend)" || strings.Contains(action, "rebase") { // or a pull that rebases
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

func missing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}
