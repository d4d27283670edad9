// Package durabletest tests a package's guarantees for power cuts. A [Recorder] records the package's changes
// to a disk, and [Replay] returns the possible contents of the disk after a power cut at any point.
package durabletest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/united-workforce/uwf/util/durable"
)

// Kind is the kind of an operation.
type Kind string

// The kinds of operations.
const (
	OpWrite    Kind = "write" // a temporary file with its content
	OpRename   Kind = "rename"
	OpAppend   Kind = "append"
	OpTruncate Kind = "truncate"
	OpRemove   Kind = "remove"
	OpMkdir    Kind = "mkdir" // one directory whose parent exists
	OpSyncFile Kind = "syncfile"
	OpSyncDir  Kind = "syncdir"
	OpSyncAll  Kind = "syncall" // everything written before; only in traces of system calls
)

// Op is a successful operation.
type Op struct {
	Kind  Kind
	Path  string // slash-separated, relative to the recorder's root, which is "."
	To    string // for a rename
	Data  []byte
	Size  int64 // for a truncation
	Perm  fs.FileMode
	Flush durable.Flush
}

// String returns a short description, for the message of a failing test.
func (o Op) String() string {
	switch o.Kind {
	case OpRename:
		return fmt.Sprintf("rename %s to %s", o.Path, o.To)
	case OpWrite, OpAppend:
		return fmt.Sprintf("%s %d bytes to %s, flush %d", o.Kind, len(o.Data), o.Path, o.Flush)
	default:
		return fmt.Sprintf("%s %s", o.Kind, o.Path)
	}
}

// Recorder is a [durable.FS] that performs and records all operations below a root directory. It is safe for
// concurrent use and performs one operation at a time.
type Recorder struct {
	disk durable.FS
	root string
	mu   sync.Mutex
	ops  []Op
}

// NewRecorder returns a Recorder for changes below root. A [Replay] doesn't include what root contains
// already, so start with an empty one.
func NewRecorder(disk durable.FS, root string) *Recorder { return &Recorder{disk: disk, root: root} }

// Ops returns the operations so far.
func (r *Recorder) Ops() []Op {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ops)
}

// WriteTemp implements [durable.FS].
func (r *Recorder) WriteTemp(path string, data []byte, perm fs.FileMode, flush durable.Flush) (temp string, err error) {
	op := Op{Kind: OpWrite, Path: path, Data: slices.Clone(data), Perm: perm, Flush: flush}
	err = r.do(op, func(op *Op) (err error) {
		temp, err = r.disk.WriteTemp(path, data, perm, flush)
		op.Path = temp
		return err
	})
	return temp, err
}

// Rename implements [durable.FS].
func (r *Recorder) Rename(from, to string) error {
	return r.do(Op{Kind: OpRename, Path: from, To: to}, func(*Op) error { return r.disk.Rename(from, to) })
}

// Append implements [durable.FS].
func (r *Recorder) Append(path string, data []byte, perm fs.FileMode, flush durable.Flush) error {
	op := Op{Kind: OpAppend, Path: path, Data: slices.Clone(data), Perm: perm, Flush: flush}
	return r.do(op, func(*Op) error { return r.disk.Append(path, data, perm, flush) })
}

// Extend implements [durable.FS].
func (r *Recorder) Extend(path string, data []byte, most int64) error {
	op := Op{Kind: OpAppend, Path: path, Data: slices.Clone(data), Perm: 0o600}
	return r.do(op, func(*Op) error { return r.disk.Extend(path, data, most) })
}

// Truncate implements [durable.FS].
func (r *Recorder) Truncate(path string, size int64) error {
	return r.do(Op{Kind: OpTruncate, Path: path, Size: size}, func(*Op) error { return r.disk.Truncate(path, size) })
}

// Remove implements [durable.FS].
func (r *Recorder) Remove(path string) error {
	return r.do(Op{Kind: OpRemove, Path: path}, func(*Op) error { return r.disk.Remove(path) })
}

// MkdirAll implements [durable.FS]. Each directory created is a separate operation.
func (r *Recorder) MkdirAll(path string, perm fs.FileMode) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return r.disk.MkdirAll(path, perm) // it already exists
	}
	if err := r.MkdirAll(filepath.Dir(path), perm); err != nil {
		return err
	}
	return r.do(Op{Kind: OpMkdir, Path: path, Perm: perm}, func(*Op) error { return r.disk.MkdirAll(path, perm) })
}

// Touch implements [durable.FS]. It isn't recorded, because no guarantee depends on times.
func (r *Recorder) Touch(path string) error { return r.disk.Touch(path) }

// SyncFile implements [durable.FS].
func (r *Recorder) SyncFile(path string) error {
	return r.do(Op{Kind: OpSyncFile, Path: path}, func(*Op) error { return r.disk.SyncFile(path) })
}

// SyncDir implements [durable.FS]. It isn't recorded above the root.
func (r *Recorder) SyncDir(path string) error {
	if _, err := r.below(path); err != nil {
		return r.disk.SyncDir(path)
	}
	return r.do(Op{Kind: OpSyncDir, Path: path}, func(*Op) error { return r.disk.SyncDir(path) })
}

// do performs an operation and records it if it succeeds. It rejects a path outside the root, which a replay
// would miss.
func (r *Recorder) do(op Op, run func(*Op) error) (err error) {
	if _, err := r.below(op.Path); err != nil {
		return err
	}
	if op.To != "" {
		if op.To, err = r.below(op.To); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := run(&op); err != nil {
		return err
	}
	if op.Path, err = r.below(op.Path); err == nil {
		r.ops = append(r.ops, op)
	}
	return err
}

// below returns path relative to the root.
func (r *Recorder) below(path string) (string, error) {
	rel, err := filepath.Rel(r.root, path)
	if err != nil {
		return "", err
	}
	rel = filepath.ToSlash(rel)
	if rel == ".." || strings.HasPrefix(rel, "../") {
		return "", fmt.Errorf("record: %s is not below %s", path, r.root)
	}
	return rel, nil
}

// disk is a simulated disk: what programs see, and what survives a power cut.
type disk struct {
	now     map[string]*inode // names as programs see them
	safe    map[string]*inode // names that survive
	pending []nameChange      // since safe, in order
	inodes  []*inode
	dirs    map[string]bool // all directories ever created
}

// inode is a file or a directory, regardless of its name.
type inode struct {
	dir  bool
	perm fs.FileMode
	now  []byte // content as programs see it
	safe []byte // content that survives
	// Remains of the last unflushed write if only half of it reached the disk: truncated, or followed by
	// zeros.
	torn, zeroed []byte
}

// nameChange adds a name to an inode, removes one, or both.
type nameChange struct {
	op       Op
	set, del string // "" for none
	inode    *inode
	unsynced []string // directories that still need a flush
}

// newDisk returns the disk after the first n operations, while the next one is in progress.
func newDisk(ops []Op, n int) *disk {
	d := &disk{now: map[string]*inode{}, safe: map[string]*inode{}, dirs: map[string]bool{}}
	for _, op := range ops[:n] {
		d.do(op)
	}
	if n < len(ops) && !slices.Contains([]Kind{OpSyncFile, OpSyncDir, OpSyncAll}, ops[n].Kind) {
		begun := ops[n]
		begun.Flush = durable.NoFlush
		d.do(begun)
	}
	return d
}

func (d *disk) do(op Op) {
	switch op.Kind {
	case OpWrite, OpAppend:
		d.write(op)
	case OpMkdir:
		d.dirs[op.Path] = true
		d.rename(nameChange{op: op, set: op.Path, inode: d.newInode(op, true)})
	case OpRename:
		d.rename(nameChange{op: op, set: op.To, del: op.Path, inode: d.file(op)})
	case OpRemove:
		d.rename(nameChange{op: op, del: op.Path})
	case OpTruncate:
		f := d.file(op)
		f.now = slices.Clone(f.now[:min(op.Size, int64(len(f.now)))])
		f.torn, f.zeroed = f.now, f.now
	case OpSyncFile:
		f := d.file(op)
		f.safe = f.now
	case OpSyncDir:
		d.syncDir(op.Path)
	case OpSyncAll:
		for _, f := range d.inodes {
			f.safe = f.now
		}
		for _, c := range d.pending {
			c.apply(d.safe)
		}
		d.pending = nil
	}
}

// write appends to a file, creating it if necessary.
func (d *disk) write(op Op) {
	f, ok := d.now[op.Path]
	if !ok {
		f = d.newInode(op, false)
		d.rename(nameChange{op: op, set: op.Path, inode: f})
	}
	half := slices.Concat(f.now, op.Data[:len(op.Data)/2])
	f.now = slices.Concat(f.now, op.Data)
	f.torn, f.zeroed = half, slices.Concat(half, make([]byte, len(f.now)-len(half)))
	if op.Flush == durable.FullFlush {
		f.safe = f.now
	}
}

// syncDir makes the names in a directory durable.
func (d *disk) syncDir(dir string) {
	var left []nameChange
	for _, c := range d.pending {
		c.unsynced = slices.DeleteFunc(slices.Clone(c.unsynced), func(s string) bool { return s == dir })
		if len(c.unsynced) > 0 {
			left = append(left, c)
			continue
		}
		c.apply(d.safe)
	}
	d.pending = left
}

func (d *disk) rename(c nameChange) {
	for _, name := range []string{c.set, c.del} {
		if dir := path.Dir(name); name != "" && !slices.Contains(c.unsynced, dir) {
			c.unsynced = append(c.unsynced, dir)
		}
	}
	c.apply(d.now)
	d.pending = append(d.pending, c)
}

func (c nameChange) apply(names map[string]*inode) {
	if c.del != "" {
		delete(names, c.del)
	}
	if c.set != "" {
		names[c.set] = c.inode
	}
}

func (d *disk) newInode(op Op, dir bool) *inode {
	f := &inode{dir: dir, perm: op.Perm.Perm()}
	d.inodes = append(d.inodes, f)
	return f
}

// file returns the file of an operation. A file that existed before the recording counts as empty and safe.
func (d *disk) file(op Op) *inode {
	f, ok := d.now[op.Path]
	if !ok {
		f = d.newInode(op, false)
		d.now[op.Path], d.safe[op.Path] = f, f
	}
	return f
}

// unflushed reports whether a power cut could change the content.
func (i *inode) unflushed() bool { return !bytes.Equal(i.now, i.safe) }

// Outcome is a possible content of a disk after a power cut.
type Outcome struct {
	// Name describes what survived, for the message of a failing test.
	Name  string
	files map[string]survivor
}

// survivor is a file or a directory that survived.
type survivor struct {
	dir  bool
	perm fs.FileMode
	data []byte
}

// Replay yields the possible contents of the disk if the power fails after the first n of ops, while the next
// one, if any, is in progress. n is between 0 and len(ops).
//
// Only what was requested is safe: SyncFile and FullFlush preserve the content of that file, SyncDir the names in that
// directory. Other content can be missing, cut in half, or half zeros at full length. Every other creation, rename or
// removal can be lost independently.
//
// There are too many outcomes to try all. Replay yields the following ones in a fixed order, omitting
// duplicates that differ only in temporary files:
//   - for names: all changes that are not safe survive; none; each alone; all
//     but each; or the first k of them, for every k, as in a journal;
//   - for each of these, the contents that are not safe: all lost, all
//     cut in half, all half zeros, all kept;
//   - with all names: the content of each file alone lost, and alone kept.
//
// This includes a kill without a power cut: all names, all contents kept.
func Replay(ops []Op, n int) iter.Seq[Outcome] {
	return func(yield func(Outcome) bool) {
		d := newDisk(ops, n)
		seen := make(map[string]bool)
		try := func(o Outcome) bool {
			key := o.Key()
			if seen[key] {
				return true
			}
			seen[key] = true
			return yield(o)
		}
		for _, names := range d.nameChoices() {
			for _, every := range []fate{kept, lost, torn, zeroed} {
				if !try(d.outcome(names, func(*inode) fate { return every })) {
					return
				}
			}
		}
		for _, f := range d.inodes {
			for _, one := range []struct{ its, others fate }{{lost, kept}, {kept, lost}} {
				choose := func(i *inode) fate {
					if i == f {
						return one.its
					}
					return one.others
				}
				if !try(d.outcome(d.nameChoices()[0], choose)) {
					return
				}
			}
		}
	}
}

// fate is the effect of a power cut on unflushed content.
type fate string

const (
	kept   fate = "kept"
	lost   fate = "lost"
	torn   fate = "cut in half"
	zeroed fate = "half zeros"
)

// after returns what remains of a content. At least safe survives.
func (i *inode) after(f fate, safe []byte) []byte {
	switch {
	case bytes.Equal(i.now, safe) || f == lost:
		return safe
	case f == torn:
		return i.torn
	case f == zeroed:
		return i.zeroed
	default:
		return i.now
	}
}

// choice selects the pending name changes that survive.
type choice struct {
	name     string
	survives func(i int) bool
}

// nameChoices returns the choices to try, starting with all changes.
func (d *disk) nameChoices() []choice {
	choices := []choice{{"all names", func(int) bool { return true }}}
	for k, c := range d.pending {
		choices = append(choices,
			choice{fmt.Sprintf("names before: %s", c.op), func(i int) bool { return i < k }},
			choice{fmt.Sprintf("names but: %s", c.op), func(i int) bool { return i != k }},
			choice{fmt.Sprintf("of names only: %s", c.op), func(i int) bool { return i == k }})
	}
	return append(choices, choice{"no names", func(int) bool { return false }})
}

// outcome returns the disk after a power cut.
func (d *disk) outcome(names choice, fateOf func(*inode) fate) Outcome {
	left := maps.Clone(d.safe)
	for i, c := range d.pending {
		if names.survives(i) {
			c.apply(left)
		}
	}
	o := Outcome{Name: names.name, files: make(map[string]survivor)}
	for name, f := range left {
		if d.reachable(left, name) {
			o.files[name] = survivor{dir: f.dir, perm: f.perm, data: f.after(fateOf(f), f.safe)}
		}
	}
	for i, f := range d.inodes {
		if f.unflushed() {
			o.Name += fmt.Sprintf("; content %d %s", i, fateOf(f))
		}
	}
	return o
}

// reachable reports whether the parent directories of a name survived. A directory not created in the
// recording existed before.
func (d *disk) reachable(left map[string]*inode, name string) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if d.dirs[dir] && left[dir] == nil {
			return false
		}
	}
	return true
}

// Key is equal for outcomes that differ only in temporary files, also across calls of Replay. Consecutive
// cuts mostly have the same outcomes, so a test that skips duplicates is many times faster.
func (o Outcome) Key() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(o.files)) {
		if !durable.IsTemp(name) {
			data := o.files[name].data
			fmt.Fprintf(&b, "%q %d %s\n", name, len(data), data)
		}
	}
	return b.String()
}

// Write writes the surviving files to a directory, which should be empty.
func (o Outcome) Write(dir string) error {
	byDepth := func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")), strings.Compare(a, b))
	}
	for _, name := range slices.SortedFunc(maps.Keys(o.files), byDepth) {
		f, target := o.files[name], filepath.Join(dir, filepath.FromSlash(name))
		if f.dir {
			if err := os.MkdirAll(target, 0o755); err != nil {
				return err
			}
			continue
		}
		err := errors.Join(os.MkdirAll(filepath.Dir(target), 0o755), os.WriteFile(target, f.data, f.perm))
		if err != nil {
			return err
		}
	}
	return nil
}
