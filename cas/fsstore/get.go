package fsstore

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
)

// Get implements [cas.Getter]. It also returns errors of the file system.
func (s *Store) Get(ctx context.Context, h cas.Hash) (cas.Node, error) {
	if err := ctx.Err(); err != nil {
		return cas.Node{}, err
	}
	if !h.Valid() {
		return cas.Node{}, fmt.Errorf("%w: %q is not a hash", cas.ErrNotFound, h)
	}
	data, err := s.readFile(h)
	if err != nil {
		return cas.Node{}, err
	}
	return s.unmarshal(h, data)
}

// Has implements [cas.Store].
func (s *Store) Has(ctx context.Context, h cas.Hash) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if !h.Valid() {
		return false, nil
	}
	_, err := os.Stat(s.Path(h))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// readFile reads the file of a node, up to a limit.
func (s *Store) readFile(h cas.Hash) ([]byte, error) {
	data, err := readBounded(s.path(h), h)
	if other := s.elsewhere(h); other != "" && errors.Is(err, cas.ErrNotFound) {
		return readBounded(other, h)
	}
	return data, err
}

// readBounded reads the file of node h at path.
func readBounded(path string, h cas.Hash) ([]byte, error) {
	data, err := readRegular(path, cas.MaxFile)
	var odd *notRegularError
	var big *tooBigError
	switch {
	case err == nil:
		return data, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: %s", cas.ErrNotFound, h)
	case errors.As(err, &odd):
		return nil, &cas.CorruptError{Hash: h, Path: path, Reason: "it is a " + kindOf(odd.mode) + ", not a file"}
	case errors.As(err, &big):
		return nil, &cas.CorruptError{Hash: h, Path: path,
			Reason: fmt.Sprintf("the file has %d bytes; the limit is %d", big.size, cas.MaxFile)}
	}
	return nil, fmt.Errorf("read node %s: %w", h, err)
}

// notRegularError means that the path isn't a regular file.
type notRegularError struct{ mode fs.FileMode }

// Error implements error.
func (e *notRegularError) Error() string { return "is not a file" }

// tooBigError means that a file is too large.
type tooBigError struct{ size int64 }

// Error implements error.
func (e *tooBigError) Error() string { return "is too large" }

func (s *Store) unmarshal(h cas.Hash, data []byte) (cas.Node, error) {
	n, err := s.format.Hash.UnmarshalFile(h, data)
	if corrupt, ok := errors.AsType[*cas.CorruptError](err); ok {
		corrupt.Path = s.Path(h)
	}
	return n, err
}

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "directory"
	case m&fs.ModeSymlink != 0:
		return "symbolic link"
	}
	return "special file"
}

// layout is the arrangement of node files.
type layout string

// The layouts.
const (
	fan2  layout = "fan2"  // <dir>/nodes/<first two>/<hash>.bin
	nodes layout = "nodes" // <dir>/nodes/<hash>.bin, the original's
	flat  layout = "flat"  // <dir>/<hash>.bin, an older layout of the original
)

func knownLayout(l layout) bool { return l == fan2 || l == nodes || l == flat }

const nodeExt = ".bin"

// path returns the path of a node's file; h must be valid.
func (s *Store) path(h cas.Hash) string {
	name := string(h) + nodeExt
	switch s.format.Layout {
	case flat:
		return filepath.Join(s.dir, name)
	case nodes:
		return filepath.Join(s.dir, nodesDir, name)
	}
	return filepath.Join(s.dir, nodesDir, string(h[:2]), name)
}

// elsewhere returns the path where an older version of the original might have put a node in the same store,
// or "".
func (s *Store) elsewhere(h cas.Hash) string {
	if s.format.Layout != nodes || h == "" {
		return ""
	}
	return filepath.Join(s.dir, string(h)+nodeExt)
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

// detectLayout looks for nodes in a directory without a format.json; "" if there are none.
func detectLayout(dir string) (layout, error) {
	isNode := func(e fs.DirEntry) bool { return hashOf(e.Name()) != "" }
	isShard := func(e fs.DirEntry) bool { return e.IsDir() && isShardName(e.Name()) }
	for _, try := range []struct {
		layout layout
		dir    string
		match  func(fs.DirEntry) bool
	}{
		{nodes, filepath.Join(dir, nodesDir), isNode},
		{flat, dir, isNode},
		{fan2, filepath.Join(dir, nodesDir), isShard},
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
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	for {
		entries, err := f.ReadDir(64)
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

// All implements [cas.Store]. It can miss nodes that are put concurrently.
func (s *Store) All(ctx context.Context, prefix string) iter.Seq2[cas.Hash, error] {
	if s.format.Layout == nodes {
		return s.both(ctx, prefix)
	}
	return func(yield func(cas.Hash, error) bool) {
		dirs, err := s.shards(prefix)
		if err != nil && !yield("", err) {
			return
		}
		for _, dir := range dirs {
			if !s.list(ctx, dir, prefix, yield) {
				return
			}
		}
	}
}

// both is All for a store used by two versions of the original.
func (s *Store) both(ctx context.Context, prefix string) iter.Seq2[cas.Hash, error] {
	return func(yield func(cas.Hash, error) bool) {
		var all []cas.Hash
		for _, dir := range []string{filepath.Join(s.dir, nodesDir), s.dir} {
			collect := func(h cas.Hash, err error) bool {
				if err != nil {
					return yield("", err)
				}
				all = append(all, h)
				return true
			}
			if !s.list(ctx, dir, prefix, collect) {
				return
			}
		}
		slices.Sort(all)
		for _, h := range slices.Compact(all) {
			if !yield(h, nil) {
				return
			}
		}
	}
}

// shards returns the directories that can contain nodes with a prefix, in order.
func (s *Store) shards(prefix string) ([]string, error) {
	root := filepath.Join(s.dir, nodesDir)
	switch s.format.Layout {
	case flat:
		return []string{s.dir}, nil
	case nodes:
		return []string{root}, nil
	}
	if len(prefix) >= 2 {
		return []string{filepath.Join(root, filepath.Base(prefix[:2]))}, nil
	}
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var dirs []string
	for _, e := range entries {
		if isShardName(e.Name()) && strings.HasPrefix(e.Name(), prefix) {
			dirs = append(dirs, filepath.Join(root, e.Name()))
		}
	}
	return dirs, err
}

// list yields the nodes of one directory; false stops.
func (s *Store) list(ctx context.Context, dir, prefix string, yield func(cas.Hash, error) bool) bool {
	if err := ctx.Err(); err != nil {
		yield("", err)
		return false
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !yield("", err) {
		return false
	}
	for _, e := range entries {
		h := hashOf(e.Name())
		at := filepath.Join(dir, e.Name())
		if h == "" || !strings.HasPrefix(string(h), prefix) || s.path(h) != at && s.elsewhere(h) != at {
			continue
		}
		if !yield(h, nil) {
			return false
		}
	}
	return true
}
