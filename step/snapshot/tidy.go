package snapshot

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/safeopen"
)

// Names of uwf's files in our git directory.
const (
	packedFile = "uwf-packed" // number of loose objects in one of 256 directories after the last packing
	tidyLock   = "uwf-tidy.lock"
)

// tidyAfter is the number of new loose objects that makes packing worthwhile: those of about 250 snapshots,
// counted in one of 256 directories.
const tidyAfter = 250 * 14 / 256

// oneOf256 is the directory used for counting.
const oneOf256 = "17"

// Tidy packs the objects in our git directory that the user's doesn't have, if there are many: packing
// reduces the space of snapshots to a tenth. The check reads one directory.
func Tidy(ctx context.Context, e env.Env, store, common string) error {
	n := loose(store)
	text, err := safeopen.ReadFile(filepath.Join(store, packedFile), maxSetting, safeopen.NoFollow)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	packed, bad := strconv.Atoi(strings.TrimSpace(string(text)))
	if bad == nil && n <= packed+tidyAfter {
		return nil
	}
	if bad != nil { // created from a repository with many loose objects
		return note(store, n)
	}
	held, err := durable.Lock(ctx, filepath.Join(store, tidyLock))
	if err != nil {
		return err
	}
	defer func() { _ = held.Unlock() }()
	err = inStore(e, store).pack(ctx, store, common)
	return errors.Join(err, note(store, loose(store)))
}

func note(store string, n int) error {
	return durable.Replace(durable.OS(), filepath.Join(store, packedFile), []byte(strconv.Itoa(n)+"\n"), 0o600)
}

func loose(store string) int {
	entries, _ := os.ReadDir(filepath.Join(store, "objects", oneOf256)) // a missing directory counts as empty
	return len(entries)
}

// pack packs the loose objects that the user's git directory doesn't have, including unreferenced ones.
func (g git) pack(ctx context.Context, store, common string) error {
	var ours bytes.Buffer
	dirs, err := os.ReadDir(filepath.Join(store, "objects"))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if len(dir.Name()) != 2 {
			continue
		}
		entries, err := os.ReadDir(filepath.Join(store, "objects", dir.Name()))
		if err != nil {
			return err
		}
		for _, e := range entries {
			if !isObject(e.Name()) {
				continue
			}
			if _, err := os.Lstat(filepath.Join(common, "objects", dir.Name(), e.Name())); common == "" || err != nil {
				ours.WriteString(dir.Name() + e.Name() + "\n")
			}
		}
	}
	if ours.Len() == 0 {
		return nil
	}
	if _, err := g.run(ctx, ours.Bytes(), "pack-objects", "-q", filepath.Join(store, "objects", "pack",
		"pack")); err != nil {
		return err
	}
	_, err = g.run(ctx, nil, "prune-packed", "-q")
	return err
}

// Needs describes which parts of our git directory are needed.
type Needs struct {
	// Gone reports whether a thread, given by the name of its ref, was deleted.
	Gone func(thread string) bool
	// Trees lists the snapshots that the steps of other threads reference.
	Trees []protocol.Tree
}

// Collected is the result of a collection.
type Collected struct {
	Refs          int   // refs of deleted threads
	Kept          int   // remaining refs
	Before, After int64 // bytes that the user's git directory doesn't share
}

// Collect removes the refs of deleted threads, packs the remaining objects and deletes unreferenced ones that
// are an hour old. A dry run only counts refs. Collect calls alone, during which nobody may create a thread.
func Collect(ctx context.Context, e env.Env, store, common string, needs Needs, dry bool,
	alone func(func() error) error) (c Collected, err error) {
	g := inStore(e, store)
	held, err := durable.Lock(ctx, filepath.Join(store, tidyLock))
	if err != nil {
		return c, err
	}
	defer func() { _ = held.Unlock() }()
	c.Before = diskUsage(store, common)
	c.After = c.Before
	if !dry {
		err = g.keepTrees(ctx, needs)
	}
	if err == nil {
		err = alone(func() error { c.Refs, err = g.deleteRefs(ctx, needs, dry); return err })
	}
	if err != nil || dry {
		return c, err
	}
	if err := errors.Join(removeNew(store, e.Now()), g.prune(ctx, store, common)); err != nil {
		return c, err
	}
	if _, err := g.run(ctx, nil, "pack-refs", "--all"); err != nil {
		return c, err
	}
	left, err := g.ours(ctx)
	if err != nil {
		return c, err
	}
	c.Kept, c.After = len(left), diskUsage(store, common)
	return c, note(store, loose(store))
}

// keptRefs keep individual snapshots: those shared with a deleted thread, and imported ones.
const keptRefs = "refs/uwf-kept/"

// keepTrees keeps the existing trees that no commit will keep.
func (g git) keepTrees(ctx context.Context, needs Needs) error {
	refs, err := g.ours(ctx)
	if err != nil {
		return err
	}
	var stay strings.Builder
	for _, ref := range refs {
		if !strings.HasPrefix(ref, keptRefs) && !needs.Gone(path.Base(ref)) {
			stay.WriteString(ref + "\n")
		}
	}
	kept := map[string]bool{}
	if stay.Len() > 0 {
		out, err := g.run(ctx, []byte(stay.String()), "log", "--format=%T", "--stdin")
		if err != nil {
			return err
		}
		for sum := range strings.Lines(string(out)) {
			kept[strings.TrimSuffix(sum, "\n")] = true
		}
	}
	var wanted, names []string
	for _, tree := range needs.Trees {
		if sum := sumOf(tree); !kept[sum] && !slices.Contains(refs, keptRefs+sum) {
			wanted, names = append(wanted, sum), append(names, redactedRefs+sum, sum)
		}
	}
	kinds, err := g.kinds(ctx, names)
	if err != nil {
		return err
	}
	for i, sum := range wanted {
		if kinds[2*i] != "" || kinds[2*i+1] != "tree" {
			continue // has a substitute, or isn't in this git directory
		}
		if _, err := g.keep(ctx, treeOf(sum), "", keptRefs+sum); err != nil {
			return err
		}
	}
	return nil
}

// RefsOf returns the refs that keep the snapshots of some threads.
func RefsOf(ctx context.Context, e env.Env, store string, threads []string) ([]string, error) {
	refs, err := inStore(e, store).ours(ctx)
	return slices.DeleteFunc(refs, func(ref string) bool { return !slices.Contains(threads, path.Base(ref)) }), err
}

// threadRefs returns the directories of the refs of threads.
func threadRefs() []string {
	return []string{"refs/uwf", "refs/uwf-rescue", "refs/uwf-apply", "refs/uwf-applied", "refs/uwf-result"}
}

// ours returns the refs of threads and of snapshots.
func (g git) ours(ctx context.Context) ([]string, error) {
	args := append([]string{"for-each-ref", "--format=%(refname)", keptRefs}, threadRefs()...)
	out, err := g.run(ctx, nil, args...)
	return strings.Fields(string(out)), err
}

// deleteRefs removes refs that are no longer needed.
func (g git) deleteRefs(ctx context.Context, needs Needs, dry bool) (n int, err error) {
	needed := map[string]bool{}
	for _, tree := range needs.Trees {
		needed[sumOf(tree)] = true
	}
	refs, err := g.ours(ctx)
	var remove strings.Builder
	for _, ref := range refs {
		if sum, kept := strings.CutPrefix(ref, keptRefs); kept && !needed[sum] || !kept && needs.Gone(path.Base(ref)) {
			n++
			remove.WriteString("delete " + ref + "\n")
		}
	}
	if err == nil && n > 0 && !dry {
		_, err = g.run(ctx, []byte(remove.String()), "update-ref", "--stdin")
	}
	return n, err
}

// removeNew removes the new objects of killed processes, which git doesn't know.
func removeNew(store string, now time.Time) error {
	dirs, err := filepath.Glob(newObjects(store, "*"))
	for _, dir := range dirs {
		if info, gone := os.Lstat(dir); gone == nil && now.Sub(info.ModTime()) > time.Hour { // longer than patience
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}
	return err
}

// prune deletes unreferenced objects and packs the rest. Packs shared with the user's git directory stay,
// because they take no space.
func (g git) prune(ctx context.Context, store, common string) error {
	const young = "1.hour.ago" // a process might be about to reference it
	args := []string{"repack", "-A", "-d", "-l", "-q", "--unpack-unreachable=" + young}
	if common != "" {
		theirs, err := os.ReadDir(filepath.Join(common, "objects", "pack"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, pack := range theirs {
			if _, err := os.Lstat(filepath.Join(store, "objects", "pack", pack.Name())); err == nil &&
				filepath.Ext(pack.Name()) == ".pack" {
				args = append(args, "--keep-pack="+pack.Name())
			}
		}
	}
	// Prune loose objects first: packing would reset their age.
	if _, err := g.run(ctx, nil, "prune", "--expire="+young); err != nil {
		return err
	}
	_, err := g.run(ctx, nil, args...)
	return err
}

// diskUsage returns the size of the objects that the user's git directory doesn't share.
func diskUsage(store, common string) (sum int64) {
	objects := filepath.Join(store, "objects")
	_ = filepath.WalkDir(objects, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil //nolint:nilerr // what has just gone takes none
		}
		info, err := d.Info()
		if err != nil {
			return nil //nolint:nilerr // likewise
		}
		if rel, err := filepath.Rel(objects, p); err == nil && common != "" {
			if other, err := os.Lstat(filepath.Join(common, "objects", rel)); err == nil && os.SameFile(info, other) {
				return nil
			}
		}
		sum += info.Size()
		return nil
	})
	return sum
}
