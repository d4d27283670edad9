package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
)

// tidyLock protects packs of our git directory while they are written.
const tidyLock = "uwf-tidy.lock"

// tidyAfter is the number of new loose objects that makes packing worthwhile: those of about 250 snapshots,
// counted in one of 256 directories.
const tidyAfter = 250 * 14 / 256

// oneOf256 is the directory used for counting.
const oneOf256 = "17"

// Tidy packs the objects in our git directory that the user's doesn't have, if there are many: packing
// reduces the space of snapshots to a tenth. The check reads one directory.
func Tidy(ctx context.Context, e env.Env, store, common string) error {
	if few, err := loose(store, common, oneOf256); err != nil || len(few) <= tidyAfter {
		return err
	}
	held, err := durable.Lock(ctx, filepath.Join(store, tidyLock))
	if err != nil {
		return err
	}
	defer func() { _ = held.Unlock() }()
	return inStore(e, store).pack(ctx, store, common)
}

// loose returns the loose objects in a directory, unless the user's git directory also has them.
func loose(store, common, dir string) (ours []string, err error) {
	entries, err := os.ReadDir(filepath.Join(store, "objects", dir))
	for _, e := range entries {
		if !isObject(e.Name()) {
			continue
		}
		if common == "" || IsGone(filepath.Join(common, "objects", dir, e.Name())) {
			ours = append(ours, dir+e.Name())
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return ours, err
}

// pack packs the loose objects that the user's git directory doesn't have, including unreferenced ones.
func (g git) pack(ctx context.Context, store, common string) error {
	var ours bytes.Buffer
	for i := range 256 {
		list, err := loose(store, common, fmt.Sprintf("%02x", i))
		if err != nil {
			return err
		}
		for _, name := range list {
			ours.WriteString(name + "\n")
		}
	}
	if ours.Len() == 0 {
		return nil
	}
	_, err := g.run(ctx, ours.Bytes(), "pack-objects", "-q", filepath.Join(store, "objects", "pack", "pack"))
	if err != nil {
		return err
	}
	_, err = g.run(ctx, nil, "prune-packed", "-q")
	return err
}

// Needs describes which parts of our git directory are needed.
type Needs struct {
	// Gone reports whether a thread was deleted.
	Gone func(thread string) bool
	// Trees lists the snapshots that the steps of other threads reference.
	Trees []protocol.Tree
}

// Collected is the result of a collection.
type Collected struct {
	Threads       int   // deleted threads whose snapshots are not kept any more
	Kept          int   // snapshots
	Before, After int64 // bytes that the user's git directory doesn't share
}

// Collect forgets deleted threads, packs the objects of the remaining ones and deletes others that are an hour old. A
// dry run only counts threads. Collect calls alone, during which nobody may create a thread.
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
	var list []listed
	err = alone(func() error { c.Threads, list, err = g.forget(ctx, store, needs.Gone, dry); return err })
	if err != nil || dry {
		return c, err
	}
	if c.Kept, err = g.keepTrees(ctx, list, needs.Trees); err != nil {
		return c, err
	}
	if err := errors.Join(sweep(store, common, e.Now().Add(-gitPatience)), g.prune(ctx, store, common)); err != nil {
		return c, err
	}
	if _, err := g.run(ctx, nil, "pack-refs", "--all"); err != nil {
		return c, err
	}
	c.After = diskUsage(store, common)
	return c, nil
}

// keptRefs keep snapshots: see [allRef].
const keptRefs = "refs/uwf-kept/"

// threadRefs returns the directories of the refs of threads.
func threadRefs() []string {
	return []string{"refs/uwf-rescue", "refs/uwf-applied", "refs/uwf-result"}
}

// oldRefs returns the directories of the refs of threads that older versions write: an older program may be running a
// step. Their commits have parents, so a redaction deletes them.
func oldRefs() []string { return []string{"refs/uwf", "refs/uwf-apply"} }

// forget removes deleted threads from the list, and their refs. It returns their number and the rest of the list.
func (g git) forget(ctx context.Context, store string, gone func(string) bool, dry bool) (int, []listed, error) {
	threads := map[string]bool{}
	isGone := func(thread string) bool {
		threads[thread] = threads[thread] || gone(thread)
		return threads[thread]
	}
	out, err := g.run(ctx, nil, slices.Concat([]string{"for-each-ref", "--format=%(refname)"}, threadRefs(), oldRefs())...)
	var remove strings.Builder
	for ref := range strings.Lines(string(out)) {
		if isGone(path.Base(strings.TrimSpace(ref))) {
			remove.WriteString("delete " + ref)
		}
	}
	list, lost := readList(store)
	if err = errors.Join(err, lost); err == nil && !dry && remove.Len() > 0 {
		_, err = g.run(ctx, []byte(remove.String()), "update-ref", "--stdin")
	}
	isListed := func(l listed) bool { return isGone(l.thread) }
	if dry || err != nil {
		list = slices.DeleteFunc(list, isListed)
	} else {
		list, err = removeFromList(ctx, store, isListed)
	}
	maps.DeleteFunc(threads, func(_ string, gone bool) bool { return !gone })
	return len(threads), list, err
}

// prune deletes unreferenced objects and packs the rest. Packs shared with the user's git directory stay,
// because they take no space. Where a partial clone lacks objects, git can't tell which ones are unreferenced: then the
// loose ones are packed.
func (g git) prune(ctx context.Context, store, common string) error {
	const young = "1.hour.ago" // a process might be about to reference it
	args, partial := []string{"repack", "-A", "-d", "-l", "-q", "--unpack-unreachable=" + young}, false
	if common != "" {
		theirs, err := os.ReadDir(filepath.Join(common, "objects", "pack"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, pack := range theirs {
			partial = partial || filepath.Ext(pack.Name()) == promisor
			if filepath.Ext(pack.Name()) == ".pack" && !IsGone(filepath.Join(store, "objects", "pack", pack.Name())) {
				args = append(args, "--keep-pack="+pack.Name())
			}
		}
	}
	// Prune loose objects first: packing would reset their age.
	_, err := g.run(ctx, nil, "prune", "--expire="+young)
	if err == nil {
		_, err = g.run(ctx, nil, args...)
	}
	if err != nil && partial {
		err = g.pack(ctx, store, common)
	}
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
