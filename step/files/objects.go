package files

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/files/gitobject"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/proc"
)

// Objects reads files and directories of git directories of ours, one after the other.
type Objects struct {
	// Partial is a repository whose objects these are, and that does not have all of its
	// own; "": there is none.
	Partial string

	env     env.Env
	readers []*reader
}

// MissingError means that an object is in no git directory of ours. We never fetch it
// silently.
type MissingError struct {
	Object  protocol.Tree
	Partial string // as [Objects.Partial]
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("file %s is not on this machine", e.Object)
}

// reader is a running git that answers requests for objects.
type reader struct {
	child *proc.Child
	ask   *os.File
	tell  *bufio.Reader
	out   *os.File
}

// OpenObjects begins to read.
func OpenObjects(e env.Env, stores []string) (*Objects, error) {
	o := &Objects{env: e}
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
	g, err := inStore(e, store)
	if err != nil {
		return nil, err
	}
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
			Path: g.exe, Args: []string{"cat-file", "--batch"}, Dir: g.dir, Env: g.env, Session: true, WithParent: true,
			Stdin: theirs[0], Stdout: theirs[1], Stderr: null,
		})
		if err == nil {
			return &reader{child: child, ask: ours[0], out: ours[1], tell: bufio.NewReaderSize(ours[1], 256<<10)}, nil
		}
	}
	return nil, errors.Join(err, ours[0].Close(), ours[1].Close())
}

// Close ends it.
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

// Object returns the content of a file, or of a directory as git has it.
func (o *Objects) Object(ctx context.Context, id protocol.Tree, dir bool) ([]byte, error) {
	want := "blob"
	if dir {
		want = "tree"
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
		o.readers[0], o.readers[i] = r, o.readers[0] // the next one is there, too
		return content, nil
	}
	return nil, &MissingError{Object: id, Partial: o.Partial}
}

// get asks for an object; kind is "" if it is not there.
func (r *reader) get(sum string) (kind string, content []byte, err error) {
	if _, err := io.WriteString(r.ask, sum+"\n"); err != nil {
		return "", nil, err
	}
	line, err := r.tell.ReadString('\n')
	if err != nil {
		return "", nil, fmt.Errorf("git cat-file: %w", err)
	}
	words := strings.Fields(line)
	if len(words) != 3 { // "<sum> missing"
		return "", nil, nil
	}
	size, err := strconv.ParseInt(words[2], 10, 64)
	if err != nil || size > maxObject {
		return "", nil, fmt.Errorf("file %s has %s bytes: too many", sum, words[2])
	}
	content = make([]byte, size)
	if _, err := io.ReadFull(r.tell, content); err != nil {
		return "", nil, fmt.Errorf("git cat-file: %w", err)
	}
	_, err = r.tell.Discard(1) // the end of the line
	return words[1], content, err
}

// maxObject bounds what is read of a file at once, in bytes.
const maxObject = 1 << 30

// Object is a file, a link's target or a directory, as git has it.
type Object struct {
	Dir     bool
	Content []byte
}

// Keep brings n objects into a git directory of ours that belongs to no repository, and keeps
// threads' states of files with them, given newest first. Their hashes are of one function.
// Git checks all of it once more, and takes it whole or not at all.
func Keep(ctx context.Context, e env.Env, store string, objects iter.Seq2[Object, error], n int, threads map[string][]protocol.Tree) error {
	function := "sha1"
	var refs strings.Builder
	commits := map[string]string{} // by their hashes
	for thread, trees := range threads {
		function = trees[0].Function()
		at := ""
		for _, tree := range slices.Backward(trees) {
			text := gitobject.Commit(sumOf(tree), at, time.Unix(0, 0))
			at = gitobject.Hash(function, "commit", text)
			commits[at] = text
		}
		fmt.Fprintf(&refs, "update refs/uwf/%s %s\n", thread, at)
	}
	if err := (Repo{Format: function}).Seed(ctx, store, false); err != nil {
		return err
	}
	held, err := durable.Lock(ctx, filepath.Join(store, tidyLock)) // a pack that no ref leads to yet
	if err != nil {
		return err
	}
	defer func() { _ = held.Unlock() }()
	g, err := inStore(e, store)
	if err != nil {
		return err
	}
	if commits, err = unkept(ctx, e, store, function, commits); err != nil {
		return err
	}
	from, to := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		p := gitobject.NewPacker(to, function, n+len(commits))
		var err error
		for o, wrong := range objects {
			if err = wrong; err != nil {
				break
			}
			kind := gitobject.Blob
			if o.Dir {
				kind = gitobject.Tree
			}
			if err = p.Add(kind, o.Content); err != nil {
				break
			}
		}
		for _, text := range commits {
			err = errors.Join(err, p.Add(gitobject.CommitKind, []byte(text)))
		}
		err = errors.Join(err, p.Close())
		_ = to.CloseWithError(err)
		packed <- err
	}()
	_, err = g.feed(ctx, from, "index-pack", "--stdin", "--strict")
	_ = from.CloseWithError(io.ErrClosedPipe) // git has ended before
	if wrong := <-packed; wrong != nil && !errors.Is(wrong, io.ErrClosedPipe) {
		return wrong
	}
	if err != nil {
		return err
	}
	_, err = g.run(ctx, []byte(refs.String()), "update-ref", "--stdin")
	return err
}

// unkept are the commits that a git directory of ours does not have yet.
func unkept(ctx context.Context, e env.Env, store, function string, commits map[string]string) (map[string]string, error) {
	var ids []protocol.Tree
	for sum := range commits {
		ids = append(ids, protocol.Tree(function+":"+sum))
	}
	lacking, err := Lacking(ctx, e, store, ids)
	rest := map[string]string{}
	for _, id := range lacking {
		rest[sumOf(id)] = commits[sumOf(id)]
	}
	return rest, err
}

// Bring copies a state of files from one git directory of ours to another.
func Bring(ctx context.Context, e env.Env, from, to string, tree protocol.Tree) error {
	there, err := inStore(e, from)
	if err != nil {
		return err
	}
	ref := keptRefs + sumOf(tree)
	if _, err := there.keep(ctx, tree, "", ref); err != nil {
		return err
	}
	err = fetch(ctx, e, from, to, ref)
	_, gone := there.run(ctx, nil, "update-ref", "-d", ref)
	return errors.Join(err, gone)
}

// fetch copies a ref with all its objects from one of uwf's git directories to another.
func fetch(ctx context.Context, e env.Env, from, to, ref string) error {
	held, err := durable.Lock(ctx, filepath.Join(to, tidyLock)) // a pack that no ref leads to yet
	if err != nil {
		return err
	}
	defer func() { _ = held.Unlock() }()
	here, err := inStore(e, to)
	if err != nil {
		return err
	}
	here.env = append(here.env, "GIT_ALLOW_PROTOCOL=file")
	_, err = here.run(ctx, nil, "fetch", "-q", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", from, "+"+ref+":"+ref)
	return err
}
