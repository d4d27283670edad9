package tools

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/united-workforce/uwf/utilagent/tools/ignore"
)

// maxFiles bounds a walk.
const maxFiles = 500_000

// maxIgnoreBytes bounds a .gitignore file.
const maxIgnoreBytes = 1 << 20

// errLarge is for a file that is larger than its reader wants.
var errLarge = errors.New("too large")

// workers is how many goroutines search. Where there are few processors they
// wait for the disk; more than a few only compete.
func workers() int { return min(max(runtime.GOMAXPROCS(0), 4), 8) }

// room makes buf at least size long.
func room(buf *[]byte, size int) {
	if len(*buf) < size {
		*buf = make([]byte, max(size, 64<<10))
	}
}

// walker collects regular files, with several workers. It follows no links and
// looks into no repository's own directory.
type walker struct {
	w    *Workspace
	most int // files, and directories

	mu      sync.Mutex
	more    sync.Cond
	todo    []pending
	busy    int
	looked  int // directories
	names   []string
	full    bool // there were more than most
	stopped bool
}

// pending is a directory that is not looked at yet.
type pending struct {
	dir  string
	list ignore.List // of the directories above
}

func newWalker(w *Workspace) *walker {
	k := &walker{w: w, most: maxFiles}
	k.more.L = &k.mu
	return k
}

func (k *walker) sorted() []string {
	slices.Sort(k.names)
	return slices.Compact(k.names)
}

// dir adds the files below a directory. What cannot be read is left out, as if
// it were not there.
func (k *walker) dir(ctx context.Context, dir string, list ignore.List) error {
	k.todo, k.stopped = append(k.todo, pending{dir, list}), false
	end := context.AfterFunc(ctx, k.stop)
	defer end()
	var wg sync.WaitGroup
	for range workers() {
		wg.Go(k.work)
	}
	wg.Wait()
	return context.Cause(ctx)
}

// stop makes the workers end.
func (k *walker) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stopped, k.todo = true, nil
	k.more.Broadcast()
}

// work looks at directories until there are none left.
func (k *walker) work() {
	var buf []byte
	for {
		next, ok := k.take()
		if !ok {
			return
		}
		files, dirs := k.look(next, &buf)
		k.give(files, dirs)
	}
}

// take waits for a directory; there is none any more once nobody is busy.
func (k *walker) take() (pending, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.todo) == 0 && k.busy > 0 && !k.stopped {
		k.more.Wait()
	}
	if len(k.todo) == 0 || k.stopped {
		return pending{}, false
	}
	next := k.todo[len(k.todo)-1]
	k.todo = k.todo[:len(k.todo)-1]
	k.busy++
	return next, true
}

func (k *walker) give(files []string, dirs []pending) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.names = append(k.names, files...)
	k.looked++
	if len(k.names) >= k.most || k.looked >= k.most {
		k.names, k.full, k.stopped = k.names[:min(len(k.names), k.most)], true, true
	}
	k.todo = append(k.todo, dirs...)
	k.busy--
	k.more.Broadcast()
}

// look lists a directory.
func (k *walker) look(at pending, buf *[]byte) (files []string, dirs []pending) {
	d, err := k.w.folder(filepath.FromSlash(at.dir))
	if err != nil {
		return nil, nil
	}
	defer d.close()
	entries, err := d.entries()
	if err != nil {
		return nil, nil
	}
	list := at.list
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == ".gitignore" }) {
		list = withIgnoreFile(d, list, at.dir, buf)
	}
	for _, e := range entries {
		name := path.Join(at.dir, e.Name())
		if e.Name() == ".git" || k.w.hidden(name) || list.Excludes(name, e.IsDir()) {
			continue
		}
		switch {
		case e.Type().IsRegular():
			files = append(files, name)
		case e.IsDir() && e.Name() != "node_modules":
			dirs = append(dirs, pending{name, list})
		}
	}
	return files, dirs
}

// withIgnoreFile adds the .gitignore file of d, which is the directory dir of
// the workspace.
func withIgnoreFile(d folder, list ignore.List, dir string, buf *[]byte) ignore.List {
	text, err := d.read(".gitignore", maxIgnoreBytes, buf)
	if err != nil {
		return list
	}
	if dir == "." {
		dir = ""
	}
	return list.With(dir, string(text))
}
