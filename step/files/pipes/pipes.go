// Package pipes keeps git from waiting for pipes in a work tree.
//
// Git opens files of its own in each directory that it looks into, and waits for ever if one
// is a pipe. Finding them in advance would mean looking into all directories, so that is done
// only when git takes long. Opening a pipe for writing and closing it makes git go on as if it
// were an empty file.
package pipes

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/worktree"
)

const (
	longForGit  = time.Second          // before we look for pipes
	betweenEnds = 5 * time.Millisecond // at which git may wait for the next one
	maxPipes    = 1000
)

// Pipes are those for which git would wait in a work tree. Several commands may run at once.
type Pipes struct {
	root string

	mu    sync.Mutex
	found []Waited
}

// Waited is a pipe for which git would wait.
type Waited struct {
	File string `json:"file"` // absolute
	Left string `json:"left"` // as it is told: below the root, with slashes
}

// end makes a reader that waits for the pipe see an empty file.
func (w Waited) end() {
	f, err := os.OpenFile(w.File, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return // nobody waits
	}
	if filepath.Base(w.File) == "commondir" {
		_, _ = f.WriteString("./") // git gives up everything for an empty one; twice is no harm
	}
	_ = f.Close()
}

// New starts with the pipes that were found before, as far as they still exist.
func New(root string, before []Waited) *Pipes {
	return &Pipes{root: root, found: slices.DeleteFunc(before, func(w Waited) bool { return !isPipe(w.File) })}
}

func isPipe(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().Type() == fs.ModeNamedPipe
}

// Found are those that are known by now.
func (p *Pipes) Found() []Waited {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.found)
}

// Pass keeps git from waiting for pipes until the returned function is called. It calls refuse
// for what it cannot unblock: a device that git would read without end.
func (p *Pipes) Pass(ctx context.Context, refuse func(path string, kind fs.FileMode)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var over sync.WaitGroup
	over.Go(func() {
		look := time.NewTimer(longForGit)
		defer look.Stop()
		next := time.NewTicker(betweenEnds)
		defer next.Stop()
		for {
			known := p.Found()
			for _, w := range known {
				w.end()
			}
			again := next.C
			if len(known) == 0 {
				again = nil
			}
			select {
			case <-ctx.Done():
				return
			case <-again:
			case <-look.C:
				p.look(ctx, refuse)
			}
		}
	})
	return func() { cancel(); over.Wait() }
}

// look finds them, and refuses what would be read without end.
func (p *Pipes) look(ctx context.Context, refuse func(path string, kind fs.FileMode)) {
	found := map[string]string{}
	endless := false
	_ = filepath.WalkDir(p.root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil, endless, len(found) >= maxPipes:
			return fs.SkipAll
		case err != nil:
			return nil //nolint:nilerr // git cannot look there either
		}
		dir := filepath.Dir(path)
		switch d.Name() {
		case ".gitignore", ".gitattributes":
			if kind := d.Type(); kind&fs.ModeDevice != 0 {
				endless = true
				refuse(path, kind)
			} else if kind == fs.ModeNamedPipe {
				found[path] = p.below(path)
			}
		case ".git":
			if dir != p.root {
				for _, file := range Opened(dir) {
					if isPipe(file) {
						found[file] = p.below(dir)
					}
				}
			}
			if d.IsDir() {
				return fs.SkipDir
			}
		}
		return nil
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.found {
		delete(found, w.File)
	}
	for _, file := range slices.Sorted(maps.Keys(found)) {
		p.found = append(p.found, Waited{File: file, Left: found[file]})
	}
}

// below is a path as it is told.
func (p *Pipes) below(path string) string {
	rel, err := filepath.Rel(p.root, path)
	if err != nil {
		return path
	}
	return filepath.ToSlash(rel)
}

// Opened are files that git opens of a work tree, and of its repository.
func Opened(top string) []string {
	paths := []string{filepath.Join(top, ".git"), filepath.Join(top, ".gitignore"), filepath.Join(top, ".gitattributes")}
	git, common, ok := worktree.Dirs(top)
	if !ok {
		return paths
	}
	for _, name := range []string{
		"HEAD", "config", "config.worktree", "commondir", "gitdir", "packed-refs", "shallow", "index", "objects/info/alternates",
		"info/exclude", "info/attributes", "info/sparse-checkout", currentBranch(git),
	} {
		paths = append(paths, filepath.Join(git, filepath.FromSlash(name)), filepath.Join(common, filepath.FromSlash(name)))
	}
	return paths
}

// currentBranch is the file of the branch that is checked out, "HEAD" if none is.
func currentBranch(git string) string {
	const longest = 8 << 10
	text, err := careful.ReadFile(filepath.Join(git, "HEAD"), longest, careful.Follow)
	if ref, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "ref: "); ok && err == nil && filepath.IsLocal(ref) {
		return ref
	}
	return "HEAD"
}
