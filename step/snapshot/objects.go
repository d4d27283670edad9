package snapshot

import (
	"bufio"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/gitobject"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/safeopen"
)

// Objects reads files and directories from several of our git directories, in order.
type Objects struct {
	// Partial is the repository of the objects if it is a partial clone, otherwise "".
	Partial string

	readers []*reader
}

// MissingError means that an object isn't in any of our git directories. We never fetch one implicitly.
type MissingError struct {
	Object  protocol.Tree
	Partial string // as in [Objects.Partial]
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("file %s is not on this machine", e.Object)
}

// Unfetched reports whether our git directory has all objects of a tree, except those that a partial clone has not
// fetched.
func Unfetched(ctx context.Context, e env.Env, store string, tree protocol.Tree) bool {
	g := inStore(e, store).with([][2]string{{"remote.none.promisor", "true"}})
	_, err := g.run(ctx, nil, "rev-list", "--objects", "--quiet", "--missing=allow-promisor", sumOf(tree))
	return err == nil
}

// reader is a git process that returns objects on request.
type reader struct {
	child   *proc.Child
	ask     *os.File
	answers *bufio.Reader
	out     *os.File
}

// OpenObjects starts reading from the git directories in stores.
func OpenObjects(e env.Env, stores []string) (*Objects, error) {
	o := &Objects{}
	for _, store := range stores {
		r, err := newReader(e, store)
		if err != nil {
			return nil, errors.Join(err, o.Close())
		}
		o.readers = append(o.readers, r)
	}
	return o, nil
}

func newReader(e env.Env, store string) (_ *reader, err error) {
	g := inStore(e, store)
	var ours, theirs [2]*os.File
	defer func() {
		for _, f := range theirs {
			if f != nil {
				_ = f.Close()
			}
		}
	}()
	if theirs[0], ours[0], err = os.Pipe(); err != nil {
		return nil, err
	}
	if ours[1], theirs[1], err = os.Pipe(); err != nil {
		return nil, errors.Join(err, ours[0].Close())
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err == nil {
		defer func() { _ = null.Close() }()
		var child *proc.Child
		child, err = proc.Start(proc.Command{
			Path: g.exe, Args: []string{"cat-file", "--batch"}, Dir: g.dir, Env: g.environ(), Session: true, WithParent: true,
			Stdin: theirs[0], Stdout: theirs[1], Stderr: null,
		})
		if err == nil {
			return &reader{child: child, ask: ours[0], out: ours[1], answers: bufio.NewReaderSize(ours[1], 256<<10)}, nil
		}
	}
	return nil, errors.Join(err, ours[0].Close(), ours[1].Close())
}

// Close ends the git processes.
func (o *Objects) Close() error {
	var all error
	for _, r := range o.readers {
		_ = r.ask.Close()
		_ = r.out.Close()
		_, err := r.child.Wait(context.Background(), grace)
		all = errors.Join(all, err)
	}
	return all
}

// Object returns the content of a file, or of a directory in git's format.
func (o *Objects) Object(ctx context.Context, id protocol.Tree, dir bool) ([]byte, error) {
	want := gitobject.Word(gitobject.File)
	if dir {
		want = gitobject.Word(gitobject.Directory)
	}
	for i, r := range o.readers {
		kind, content, err := r.get(sumOf(id))
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			return nil, err
		case kind == "":
			continue
		case kind != want:
			return nil, fmt.Errorf("object %s is a %s, not a %s", id, kind, want)
		}
		o.readers[0], o.readers[i] = r, o.readers[0] // the next object is probably in the same one
		return content, nil
	}
	return nil, &MissingError{Object: id, Partial: o.Partial}
}

// get requests an object; kind is "" if it doesn't exist.
func (r *reader) get(sum string) (kind string, content []byte, err error) {
	if _, err := io.WriteString(r.ask, sum+"\n"); err != nil {
		return "", nil, err
	}
	line, err := r.answers.ReadString('\n')
	if err != nil {
		return "", nil, fmt.Errorf("git cat-file: %w", err)
	}
	words := strings.Fields(line)
	if len(words) != 3 { // "<sum> missing"
		return "", nil, nil
	}
	size, err := strconv.ParseInt(words[2], 10, 64)
	if err != nil || size > maxObject {
		return "", nil, fmt.Errorf("file %s has %s bytes, which is too large", sum, words[2])
	}
	content = make([]byte, size)
	if _, err := io.ReadFull(r.answers, content); err != nil {
		return "", nil, fmt.Errorf("git cat-file: %w", err)
	}
	_, err = r.answers.Discard(1) // trailing newline
	return words[1], content, err
}

// maxObject bounds the size of a file, in bytes.
const maxObject = 1 << 30

// AddObjects adds n objects to our git directory without a repository. Git verifies everything, and the operation is
// atomic.
func AddObjects(ctx context.Context, e env.Env, store, function string, objects iter.Seq2[gitobject.Object, error],
	n int) error {
	if err := (Repo{Format: function}).Seed(ctx, store, false); err != nil {
		return err
	}
	held, err := durable.Lock(ctx, filepath.Join(store, tidyLock)) // protects a pack without an index
	if err != nil {
		return err
	}
	defer func() { _ = held.Unlock() }()
	from, to := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		p := newPacker(to, function, n)
		var err error
		for o, wrong := range objects {
			if err = wrong; err != nil {
				break
			}
			kind := packBlob
			if o.Dir {
				kind = packTree
			}
			if err = p.add(kind, o.Content); err != nil {
				break
			}
		}
		err = errors.Join(err, p.close())
		_ = to.CloseWithError(err)
		packed <- err
	}()
	_, err = inStore(e, store).feed(ctx, from, "index-pack", "--stdin", "--strict")
	_ = from.CloseWithError(io.ErrClosedPipe) // git exited early
	if wrong := <-packed; wrong != nil && !errors.Is(wrong, io.ErrClosedPipe) {
		return wrong
	}
	return err
}

// Copy copies a snapshot from one of our git directories to another.
func Copy(ctx context.Context, e env.Env, from, to string, tree protocol.Tree) error {
	held, err := durable.Lock(ctx, filepath.Join(to, tidyLock)) // protects a pack without an index
	if err != nil {
		return err
	}
	defer func() { _ = held.Unlock() }()
	return inStore(e, from).transfer(ctx, to, sumOf(tree)+"\n", nil, inStore(e, to), "--stdin")
}

// transfer packs everything reachable from revisions, and lets another git index the pack. tmp is the directory for
// temporary files.
func (g git) transfer(ctx context.Context, tmp, revs string, more []string, to git, indexing ...string) error {
	dir, err := os.MkdirTemp(tmp, "import-*.tmp")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	args := append([]string{"pack-objects", "-q", "--non-empty", "--delta-base-offset", "--revs"}, more...)
	if _, err := g.run(ctx, []byte(revs), append(args, filepath.Join(dir, "pack"))...); err != nil {
		return err
	}
	packs, err := fs.Glob(os.DirFS(dir), "*.pack")
	if err != nil || len(packs) == 0 { // it has all of it
		return err
	}
	pack, err := os.Open(filepath.Join(dir, packs[0]))
	if err != nil {
		return err
	}
	defer func() { _ = pack.Close() }()
	_, err = to.feed(ctx, pack, append([]string{"index-pack"}, indexing...)...)
	return err
}

// Import copies a commit and everything it needs to the user's repository. No ref there leads to it yet, but
// git gc keeps it until [Repo.Release] is called with the same why. Git packs it in our git directory,
// because in the user's it would start programs from the repository's settings.
func (r Repo) Import(ctx context.Context, s Spec, commit, why string) error {
	user := r.user(ctx)
	out, err := user.run(ctx, nil, "rev-parse", "--all", "--revs-only", "HEAD")
	if err != nil {
		return err
	}
	ours := inStore(r.env, s.Git)
	known, err := ours.having(ctx, strings.Fields(string(out)))
	if err != nil {
		return err
	}
	into := filepath.Join(r.Common, "objects")
	for _, dir := range []string{into, filepath.Join(r.Common, packsIn)} { // no links out of the user's git directory
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
			return &RefusedError{Dir: dir, Reason: "is not a directory"}
		}
	}
	to := ours
	to.env = append(slices.Clip(ours.env), "GIT_OBJECT_DIRECTORY="+into)
	revs := commit + "\n--not\n" + strings.Join(known, "\n") + "\n"
	more := missing(s, "--missing=allow-any")
	if err := ours.transfer(ctx, s.Git, revs, more, to, "--stdin", "--keep="+why); err != nil {
		return fmt.Errorf("write the objects of %s: %w", r.Common, err)
	}
	_, err = user.run(ctx, nil, "cat-file", "-e", commit+"^{tree}")
	return err
}

// packsIn is the pack directory within a git directory.
var packsIn = filepath.Join("objects", "pack")

// Release lets the user's git collect what [Repo.Import] copied with the same why, unless a ref leads to it.
func (r Repo) Release(why string) (err error) {
	root, err := os.OpenRoot(r.Common)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	kept, err := fs.Glob(root.FS(), filepath.ToSlash(filepath.Join(packsIn, "*.keep")))
	for _, path := range kept {
		if text, lost := safeopen.ReadFileIn(root, path, maxSetting); lost == nil && string(text) == why+"\n" {
			err = errors.Join(err, root.Remove(path))
		}
	}
	return err
}

// DamagedError means that an object's content doesn't match its name.
type DamagedError struct {
	Object string // name of the object: the hash of its content
	Path   string // in the work tree; "" means all of it
}

func (e *DamagedError) Error() string {
	what := "the file store"
	if e.Path != "" {
		what = "the stored " + e.Path
	}
	return fmt.Sprintf("%s was changed: object %s has another hash", what, e.Object)
}

// sound returns an error if an object in which two trees differ doesn't match its name. Our objects are hard
// links to those of the repository, so anyone who can write there, such as a command confined to the work
// tree, can change them in place, and git doesn't verify the hash of a file or directory that it reads. "" is
// a tree without files. Its error is a [*DamagedError].
func (g git) sound(ctx context.Context, e env.Env, a, b protocol.Tree) (err error) {
	if a == b {
		return nil
	}
	a, b = orEmpty(a, b), orEmpty(b, a)
	list, _, err := g.compare(ctx, a, b, "-t")
	if err != nil {
		return err
	}
	r, err := newReader(e, g.store)
	if err != nil {
		return err
	}
	objects := &Objects{readers: []*reader{r}}
	defer func() { _ = objects.Close() }()
	seen := map[string]bool{}
	check := func(sum, path string) error {
		if seen[sum] || strings.Trim(sum, "0") == "" {
			return nil
		}
		seen[sum] = true
		kind, content, err := r.get(sum)
		if err != nil || kind == "" { // git reports a missing object when it needs it
			return err
		}
		is := gitobject.File
		if kind == gitobject.Word(gitobject.Directory) {
			is = gitobject.Directory
		}
		if sumOf(gitobject.ID(is, content, a.Function())) != sum {
			return &DamagedError{Object: sum, Path: path}
		}
		return ctx.Err()
	}
	list = append(list, difference{hashWas: sumOf(a), hash: sumOf(b)})
	for _, d := range slices.Backward(list) {
		if d.was != Gitlink { // only the name of a submodule's commit is stored
			err = check(d.hashWas, d.path)
		}
		if d.mode != Gitlink && err == nil {
			err = check(d.hash, d.path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// packer writes a git pack without deltas.
type packer struct {
	to     io.Writer
	digest hash.Hash
	zip    *zlib.Writer
	err    error
}

// newPacker starts a pack of n objects, whose names use a hash function.
func newPacker(to io.Writer, function string, n int) *packer {
	p := &packer{digest: sha1.New()}
	if function == "sha256" {
		p.digest = sha256.New()
	}
	p.to = io.MultiWriter(to, p.digest)
	p.zip, p.err = zlib.NewWriterLevel(p.to, zlib.BestSpeed)
	p.write(binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(n)))
	return p
}

func (p *packer) write(data []byte) {
	if p.err == nil {
		_, p.err = p.to.Write(data)
	}
}

// The kinds of objects in a pack.
const (
	packTree = 2
	packBlob = 3
)

// add writes an object: its kind and size, encoded in 4 bits and then 7 bits per byte, and its content.
func (p *packer) add(kind int, content []byte) error {
	size := len(content)
	head := []byte{byte(kind<<4 | size&15)}
	for size >>= 4; size > 0; size >>= 7 {
		head[len(head)-1] |= 0x80
		head = append(head, byte(size&127))
	}
	p.write(head)
	if p.err != nil {
		return p.err
	}
	p.zip.Reset(p.to)
	_, err := p.zip.Write(content)
	p.err = errors.Join(err, p.zip.Close())
	return p.err
}

func (p *packer) close() error {
	p.write(p.digest.Sum(nil))
	return p.err
}
