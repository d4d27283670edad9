// Package original reads and writes stores with a file for each node, without an index or a lock. The original uwf
// has two such layouts. Our stores of version 1 have a third one, which the package only reads.
//
// A node's file is written under a temporary name and renamed, so a reader sees a complete node or none.
package original

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/safeopen"
)

// Files are the node files of a store.
type Files struct {
	Dir    string
	Layout Layout
	Hash   cas.Algorithm
	FS     durable.FS
}

// Read returns the content of a node's file, up to a limit. It returns [cas.ErrNotFound], a
// [*cas.CorruptError] for something that can't be a node's file, and errors of the file system.
func (f Files) Read(h cas.Hash) ([]byte, error) {
	data, err := readBounded(f.path(h), h)
	if other := f.elsewhere(h); other != "" && errors.Is(err, cas.ErrNotFound) {
		return readBounded(other, h)
	}
	return data, err
}

// Get returns a node. It returns the errors of [cas.Getter].
func (f Files) Get(h cas.Hash) (cas.Node, error) {
	data, err := f.Read(h)
	if err != nil {
		return cas.Node{}, err
	}
	n, err := f.Hash.UnmarshalFile(h, data)
	if corrupt, ok := errors.AsType[*cas.CorruptError](err); ok {
		corrupt.Path = f.Path(h)
	}
	return n, err
}

// Has reports whether a node's file exists.
func (f Files) Has(h cas.Hash) (bool, error) {
	_, err := os.Stat(f.Path(h))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Path returns the path of a node's file, which needn't exist. h must be valid.
func (f Files) Path(h cas.Hash) string {
	if other := f.elsewhere(h); other != "" && !isAt(f.path(h)) && isAt(other) {
		return other
	}
	return f.path(h)
}

// readBounded reads the file of node h at path.
func readBounded(path string, h cas.Hash) ([]byte, error) {
	data, err := safeopen.ReadFile(path, int64(cas.MaxFile), safeopen.NoFollow)
	var odd *safeopen.NotFileError
	var big *safeopen.TooBigError
	switch {
	case err == nil:
		return data, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: %s", cas.ErrNotFound, h)
	case errors.As(err, &odd):
		return nil, &cas.CorruptError{Hash: h, Path: path, Reason: odd.Reason()}
	case errors.As(err, &big):
		return nil, &cas.CorruptError{Hash: h, Path: path, Reason: fmt.Sprintf("the file has more than %d bytes", cas.MaxFile)}
	}
	return nil, fmt.Errorf("read node %s: %w", h, err)
}

// Layout is the arrangement of node files.
type Layout string

// The layouts.
const (
	Fan2  Layout = "fan2"  // <dir>/nodes/<first two>/<hash>.bin, our first
	Nodes Layout = "nodes" // <dir>/nodes/<hash>.bin, the original's
	Flat  Layout = "flat"  // <dir>/<hash>.bin, an older layout of the original
)

const (
	nodeExt  = ".bin"
	nodesDir = "nodes"
)

// path returns the path of a node's file; h must be valid.
func (f Files) path(h cas.Hash) string {
	name := string(h) + nodeExt
	switch f.Layout {
	case Flat:
		return filepath.Join(f.Dir, name)
	case Nodes:
		return filepath.Join(f.Dir, nodesDir, name)
	}
	return filepath.Join(f.Dir, nodesDir, string(h[:2]), name)
}

// elsewhere returns the path where an older version of the original might have put a node in the same store,
// or "".
func (f Files) elsewhere(h cas.Hash) string {
	if f.Layout != Nodes || h == "" {
		return ""
	}
	return filepath.Join(f.Dir, string(h)+nodeExt)
}

func isAt(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// hashOf returns the hash in a file name, "" if it isn't a node file.
func hashOf(name string) cas.Hash {
	stem, ok := strings.CutSuffix(name, nodeExt)
	if h := cas.Hash(stem); ok && h.Valid() {
		return h
	}
	return ""
}

// Detect looks for nodes in a directory without a format.json; "" if there are none.
func Detect(dir string) (Layout, error) {
	isNode := func(e fs.DirEntry) bool { return hashOf(e.Name()) != "" }
	isShard := func(e fs.DirEntry) bool { return e.IsDir() && isShardName(e.Name()) }
	for _, try := range []struct {
		layout Layout
		dir    string
		match  func(fs.DirEntry) bool
	}{
		{Nodes, filepath.Join(dir, nodesDir), isNode},
		{Flat, dir, isNode},
		{Fan2, filepath.Join(dir, nodesDir), isShard},
	} {
		ok, err := anyEntry(try.dir, try.match)
		if ok || err != nil {
			return try.layout, err
		}
	}
	return "", nil
}

// anyEntry reads a directory up to the first match.
func anyEntry(dir string, match func(fs.DirEntry) bool) (bool, error) {
	d, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = d.Close() }() // nothing was written
	for {
		entries, err := d.ReadDir(64)
		if slices.ContainsFunc(entries, match) {
			return true, nil
		}
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
}

func isShardName(name string) bool {
	return len(name) == 2 && cas.Hash(name+"00000000000").Valid()
}

// All yields the hashes of the nodes, as [cas.Store]. It can miss nodes that are put concurrently.
func (f Files) All(ctx context.Context, prefix string) iter.Seq2[cas.Hash, error] {
	return func(yield func(cas.Hash, error) bool) {
		dirs, err := f.dirs(prefix)
		if err != nil && !yield("", err) {
			return
		}
		var all []cas.Hash
		for _, dir := range dirs {
			entries, err := os.ReadDir(dir)
			if err != nil && !errors.Is(err, fs.ErrNotExist) && !yield("", err) {
				return
			}
			for _, e := range entries {
				h, at := hashOf(e.Name()), filepath.Join(dir, e.Name())
				if h != "" && strings.HasPrefix(string(h), prefix) && (f.path(h) == at || f.elsewhere(h) == at) {
					all = append(all, h)
				}
			}
		}
		slices.Sort(all)
		for _, h := range slices.Compact(all) {
			if err := ctx.Err(); err != nil {
				yield("", err)
				return
			}
			if !yield(h, nil) {
				return
			}
		}
	}
}

// dirs returns the directories that can contain nodes with a prefix.
func (f Files) dirs(prefix string) (dirs []string, err error) {
	root := filepath.Join(f.Dir, nodesDir)
	switch {
	case f.Layout == Flat:
		return []string{f.Dir}, nil
	case f.Layout == Nodes:
		return []string{root, f.Dir}, nil
	}
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if isShardName(e.Name()) && strings.HasPrefix(e.Name(), prefix) {
			dirs = append(dirs, filepath.Join(root, e.Name()))
		}
	}
	return dirs, err
}

// Put writes nodes that don't exist yet and makes all of them durable. It returns the errors of [cas.Store].
func (f Files) Put(ctx context.Context, nodes ...cas.Node) error {
	files, err := f.plan(ctx, nodes)
	if err != nil || len(files) == 0 {
		return err
	}
	if err := durable.WriteAll(f.FS, files); err != nil {
		return fmt.Errorf("write nodes: %w", err)
	}
	return nil
}

// plan compares nodes with existing ones. It changes nothing, so that a rejected node doesn't affect the
// others.
func (f Files) plan(ctx context.Context, nodes []cas.Node) (files []durable.File, err error) {
	distinct, err := f.Hash.Distinct(ctx, nodes)
	if err != nil {
		return nil, err
	}
	for _, n := range distinct {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		there, err := f.compare(n)
		if err != nil {
			return nil, err
		}
		file := durable.File{Path: f.Path(n.Hash), Present: there}
		if !there {
			file.Data, file.Perm = cas.MarshalFile(n), 0o644
		}
		files = append(files, file)
	}
	return files, nil
}

// compare reports whether a node exists, or returns a [*cas.CollisionError]. A damaged one counts as missing: writing
// it again restores it.
func (f Files) compare(n cas.Node) (bool, error) {
	old, err := f.Get(n.Hash)
	switch {
	case errors.Is(err, cas.ErrNotFound), errors.As(err, new(*cas.CorruptError)):
		return false, nil
	case err == nil && !old.Equal(n):
		err = &cas.CollisionError{Hash: n.Hash}
	}
	return err == nil, err
}
