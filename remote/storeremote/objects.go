package storeremote

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"github.com/united-workforce/uwf/cas/bundle"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/durable"
)

// object is the file of a git object, in the form in which git keeps one.
func (r *Remote) object(id protocol.Tree) string {
	function := id.Function()
	digits := string(id[len(function)+1:])
	return filepath.Join(r.dir, "objects", function, digits[:2], digits[2:])
}

// MissingObjects implements [remote.Remote].
func (r *Remote) MissingObjects(ctx context.Context, ids []protocol.Tree) ([]protocol.Tree, error) {
	if err := cmp.Or(ctx.Err(), remote.CheckObjects(ids)); err != nil {
		return nil, err
	}
	gone, err := r.redacted()
	if err != nil {
		return nil, err
	}
	var missing []protocol.Tree
	for _, id := range ids {
		_, err := os.Lstat(r.object(id))
		if errors.Is(err, fs.ErrNotExist) {
			if !gone[id] {
				missing = append(missing, id)
			}
		} else if err != nil {
			return nil, err
		}
	}
	return missing, ctx.Err()
}

// GetObjects implements [remote.Remote].
func (r *Remote) GetObjects(ctx context.Context, ids []protocol.Tree) iter.Seq2[remote.Object, error] {
	return func(yield func(remote.Object, error) bool) {
		if err := cmp.Or(ctx.Err(), remote.CheckObjects(ids)); err != nil {
			yield(remote.Object{}, err)
			return
		}
		for _, id := range ids {
			o, err := r.readObject(id)
			err = cmp.Or(ctx.Err(), err)
			if !yield(o, err) || err != nil {
				return
			}
		}
	}
}

func (r *Remote) readObject(id protocol.Tree) (o remote.Object, err error) {
	f, err := careful.Open(r.object(id), careful.NoFollow)
	if errors.Is(err, fs.ErrNotExist) {
		return o, &remote.MissingError{Hash: string(id)}
	}
	if err != nil {
		return o, err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	damaged := func(why any) error {
		return &protocol.Error{Code: protocol.CodeCorrupt, Message: fmt.Sprintf("object %s is damaged: %v (%s)", id, why, r.object(id))}
	}
	z, err := zlib.NewReader(f)
	if err != nil {
		return o, damaged(err)
	}
	text, err := io.ReadAll(io.LimitReader(z, remote.MaxObject+64))
	if err != nil {
		return o, damaged(err)
	}
	head, content, _ := bytes.Cut(text, []byte{0})
	o = remote.Object{ID: id, Kind: remote.File, Content: content}
	if bytes.HasPrefix(head, []byte("tree ")) {
		o.Kind = remote.Directory
	}
	if err := o.Check(); err != nil {
		return o, damaged(err)
	}
	return o, nil
}

// PutObjects implements [remote.Remote].
func (r *Remote) PutObjects(ctx context.Context, objects []remote.Object) error {
	var levels [][]durable.File // those of one level name only what lower ones hold
	depth := depths(objects)
	gone, err := r.redacted()
	if err != nil {
		return err
	}
	for _, o := range objects {
		if err := cmp.Or(ctx.Err(), o.Check()); err != nil {
			return err
		}
		if gone[o.ID] {
			continue
		}
		word := "blob"
		if o.Kind == remote.Directory {
			word = "tree"
		}
		var b bytes.Buffer
		z := zlib.NewWriter(&b)
		_, err := fmt.Fprintf(z, "%s %d\x00", word, len(o.Content))
		if err == nil {
			_, err = z.Write(o.Content)
		}
		if err = cmp.Or(err, z.Close()); err != nil {
			return err
		}
		_, err = r.readObject(o.ID) // one that is damaged is written anew
		for len(levels) <= depth[o.ID] {
			levels = append(levels, nil)
		}
		levels[depth[o.ID]] = append(levels[depth[o.ID]], durable.File{Path: r.object(o.ID), Data: b.Bytes(), Perm: 0o444, Present: err == nil})
	}
	if len(levels) == 0 {
		return ctx.Err()
	}
	if err := r.store.Make(ctx, r.nowMs()); err != nil {
		return err
	}
	if err := durable.MkdirAll(r.disk, filepath.Join(r.dir, "objects"), 0o700); err != nil {
		return err
	}
	for _, files := range levels { // a directory that is there counts as whole, also after a power cut
		if err := durable.WriteAll(r.disk, files, durable.Full); err != nil {
			return err
		}
	}
	return nil
}

// depths are how many directories of a batch lie below each object, at most; each comes
// after what it names.
func depths(objects []remote.Object) map[protocol.Tree]int {
	depth := map[protocol.Tree]int{}
	for _, o := range objects {
		if depth[o.ID] = 0; o.Kind != remote.Directory {
			continue
		}
		entries, _ := bundle.Entries(o.ID, o.Content) // what cannot be read names nothing
		for _, e := range entries {
			if below, here := depth[e.ID]; here {
				depth[o.ID] = max(depth[o.ID], below+1)
			}
		}
	}
	return depth
}
