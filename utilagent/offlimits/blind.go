package offlimits

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/utilagent/box/gitindex"
)

// Bounds of what is read of what repositories pass over.
const (
	maxPassed       = 300_000 // names; of more nothing is told
	maxPackedRefs   = 64 << 20
	maxRepositories = 2000 // within others
)

// passedID knows again what a repository passes over.
type passedID [8]byte

// passed is what git was told to pass over in repositories, so that a person who looks
// at `git status` or `git diff` sees nothing of it: files of which it assumes that
// nobody changes them, and commits and files in whose place it takes others.
type passed struct {
	ids   map[passedID]bool
	known map[passedID]bool // before
	fresh []string          // not known
}

func (p *passed) add(name string) {
	var id passedID
	sum := sha256.Sum256([]byte(name))
	copy(id[:], sum[:])
	if len(p.ids) >= maxPassed || p.ids[id] {
		return
	}
	p.ids[id] = true
	if p.known != nil && !p.known[id] {
		p.fresh = append(p.fresh, name)
	}
}

// passing looks at the repositories among names of a root; known is what was found
// before, nil at first.
func passing(root *os.Root, names map[string]scope, known map[passedID]bool) *passed {
	p := &passed{ids: map[passedID]bool{}, known: known}
	for name, s := range names {
		if s != repository || !isPlainDir(root, name) {
			continue
		}
		if isGit(plain(path.Base(name))) { // otherwise it has no files
			p.index(root, name, tops{name: strings.TrimPrefix(path.Dir(name)+"/", "./"), here: true})
		}
		p.replaced(root, name)
		seen := 0
		for _, inner := range []string{"worktrees", "modules"} {
			p.within(root, path.Join(name, inner), &seen, 0)
		}
	}
	return p
}

// within looks at the repositories of work trees or submodules, which may lie deeper.
func (p *passed) within(root *os.Root, name string, seen *int, depth int) {
	if depth > maxIncludeDepth {
		return
	}
	_ = list(root, name, func(entry string) error { // there may be none
		if *seen++; *seen > maxRepositories {
			return errEnough
		}
		full := path.Join(name, entry)
		if !isPlainDir(root, full) {
			return nil
		}
		if isRepository(root, full) {
			p.index(root, full, tops{name: full + "/index: "})
			p.replaced(root, full)
			p.within(root, path.Join(full, "modules"), seen, depth+1)
		} else {
			p.within(root, full, seen, depth+1)
		}
		return nil
	})
}

// tops is what stands before the names of a repository's files.
type tops struct {
	name string
	here bool // they lie there
}

func isThere(root *os.Root, name string) bool {
	_, err := root.Lstat(name)
	return err == nil
}

// index looks at the files of a repository.
func (p *passed) index(root *os.Root, git string, top tops) {
	for _, index := range indexesOf(root, git) {
		text, err := careful.ReadFileIn(root, index, gitindex.MaxBytes)
		if err != nil {
			continue
		}
		for _, e := range gitindex.Entries(text) {
			switch {
			case e.Passed == "":
			case e.Name == "": // what it shares has the name
				p.add(fmt.Sprintf("%s: a file (%s)", index, e.Passed))
			case e.Passed == gitindex.Skipped && top.here && !isThere(root, top.name+e.Name): // as in a sparse checkout
			default:
				p.add(fmt.Sprintf("%s%s (%s)", top.name, e.Name, e.Passed))
			}
		}
	}
}

// replaced looks at what is taken in the place of something else, or from elsewhere.
func (p *passed) replaced(root *os.Root, git string) {
	_ = list(root, path.Join(git, "refs", "replace"), func(entry string) error {
		p.add(path.Join(git, "refs", "replace", entry))
		return nil
	})
	alternates := path.Join(git, "objects", "info", "alternates")
	if text, err := careful.ReadFileIn(root, alternates, maxFileBytes); err == nil {
		for line := range strings.Lines(string(text)) {
			p.add(alternates + ": " + strings.TrimSpace(line))
		}
	}
	const replaces = "refs/replace/"
	packed := path.Join(git, "packed-refs")
	if text, err := careful.ReadFileIn(root, packed, maxPackedRefs); err == nil && bytes.Contains(text, []byte(replaces)) {
		for line := range strings.Lines(string(text)) {
			if _, ref, ok := strings.Cut(strings.TrimSpace(line), " "); ok && strings.HasPrefix(ref, replaces) {
				p.add(packed + ": " + ref)
			}
		}
	}
}

// indexesOf are the lists of files of a repository: its own, and what that shares.
func indexesOf(root *os.Root, git string) []string {
	found := []string{path.Join(git, "index")}
	_ = list(root, git, func(entry string) error {
		if strings.HasPrefix(entry, "sharedindex.") {
			found = append(found, path.Join(git, entry))
		}
		return nil
	})
	return found
}
