package offlimits

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"
)

// Bounds of what is looked at besides directories of a workspace.
const (
	maxOutsideDirs = 200     // of a place outside, those near its top
	maxLinks       = 200_000 // more are taken for new
)

// most is how many directories of a tree are looked at.
func (t *tree) most() int {
	if t.outside {
		return maxOutsideDirs
	}
	return maxDirs
}

// newDirs is how many directories a command may add, all of which are looked at.
func (l List) newDirs() int { return cmp.Or(l.most, maxNewDirs) }

// clockSlack is how far the clock of a file system may be behind: it ticks.
const clockSlack = 100 * time.Millisecond

// maxCrowded bounds how many directories are told in which there is too much.
const maxCrowded = 5

// crowded are the directories in which most was not looked at.
func (v view) crowded(dir string) []string {
	count := map[string]int{}
	for name := range v.unseen {
		count[path.Dir(name)]++
	}
	names := slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b))
	})
	for i, name := range names {
		names[i] = filepath.Join(dir, filepath.FromSlash(name))
	}
	return names[:min(len(names), maxCrowded)]
}

// linkID knows a symbolic link again by its path and where it leads.
type linkID [8]byte

func idOf(workspace, name string) (id linkID, ok bool) {
	to, err := os.Readlink(filepath.Join(workspace, filepath.FromSlash(name)))
	sum := sha256.Sum256([]byte(name + "\x00" + to))
	copy(id[:], sum[:])
	return id, err == nil
}

// link notes a link of a workspace.
func (v *view) link(workspace, name string) {
	if id, ok := idOf(workspace, name); ok {
		if len(v.links) < maxLinks {
			v.links[id] = true
		}
		v.found = append(v.found, link{name, id})
	}
}

type link struct {
	name string
	id   linkID
}

// fixLinks removes new links that lead to where commands can write outside of the
// workspace: who follows one stands in a directory that nobody watches, and git looks
// for a repository in each above it.
func (k *keeper) fixLinks(seen, was view) error {
	if k.dir != k.place.Workspace {
		return nil
	}
	var errs []error
	for _, l := range seen.found {
		if was.links[l.id] || k.allowed(l.name) || !isPlainDir(k.root, path.Dir(l.name)) {
			continue
		}
		if info, err := k.root.Lstat(l.name); err != nil || k.older(l.name, info) {
			continue
		}
		to := end(filepath.Join(k.dir, filepath.FromSlash(l.name)), 0)
		if !within(k.dir, to) && (covered(k.place.Outside, to) || covered(k.place.Temporary, to)) && !covered(k.list.writable, to) {
			errs = append(errs, k.remove(l.name))
		}
	}
	return errors.Join(errs...)
}

// end is where a link leads, also if nothing is there yet.
func end(path string, links int) string {
	to, err := os.Readlink(path)
	if _, gone := os.Stat(path); gone == nil || err != nil || links > maxIncludeDepth {
		return followed(path)
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(followed(filepath.Dir(path)), to)
	}
	return end(to, links+1)
}
