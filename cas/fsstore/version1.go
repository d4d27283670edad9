package fsstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/original"
	"github.com/united-workforce/uwf/cas/record"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/safeopen"
)

// A store of version 1 has a file for each node, each seal and each home. They are read as if they were the oldest
// pack. An entry of it has no place in a stream: the path of its file follows from its kind and its hash.

// firstName is the name of the source. It comes before the names of all packs.
func firstName() fileName { return fileName{number: -1, part: 1} }

// firstVersion returns the files of a store of version 1 as a source.
func (s *Store) firstVersion() *source {
	return &source{name: firstName(), path: s.dir, first: &s.files, files: &s.open, sorted: &sortedIndex{},
		loaded: true}
}

// fileOf returns the path of the file of an entry that isn't a home.
func (g *source) fileOf(e entry) string {
	h := protocol.HashOf(e.hash)
	if e.kind == record.Seal {
		return filepath.Join(g.path, sealsDir, string(h[:2]), string(h))
	}
	return g.first.Path(h)
}

// findFiles returns the entries of the files with a hash. Homes are few.
func (g *source) findFiles(hash uint64) (found []entry, err error) {
	for _, e := range []entry{{hash: hash, kind: record.Node}, {hash: hash, kind: record.Seal}} {
		info, err := os.Lstat(g.fileOf(e))
		if err != nil && !isGone(err) {
			return nil, err
		}
		if err == nil {
			e.length = int(min(info.Size(), math.MaxInt32))
			found = append(found, e)
		}
	}
	homes, err := g.homeFiles()
	if text, ok := homes[hash]; ok {
		found = append(found, entry{hash: hash, kind: record.Home, length: len(text)})
	}
	return found, err
}

// allFiles returns the entries of all files.
func (g *source) allFiles() (all []entry, err error) {
	add := func(h cas.Hash, kind record.Kind) {
		e := entry{hash: h.Number(), kind: kind}
		if info, err := os.Lstat(g.fileOf(e)); err == nil { // otherwise it is gone
			e.length = int(min(info.Size(), math.MaxInt32))
			all = append(all, e)
		}
	}
	for h, failed := range g.first.All(context.Background(), "") {
		if failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		add(h, record.Node)
	}
	seals, _ := filepath.Glob(filepath.Join(g.path, sealsDir, "*", "*"))
	for _, path := range seals {
		if h := cas.Hash(filepath.Base(path)); h.Valid() && filepath.Base(filepath.Dir(path)) == string(h[:2]) {
			add(h, record.Seal)
		}
	}
	homes, failed := g.homeFiles()
	for hash, text := range homes {
		all = append(all, entry{hash: hash, kind: record.Home, length: len(text)})
	}
	return all, errors.Join(err, failed)
}

// homeFiles returns the bodies of the homes, by their hashes.
func (g *source) homeFiles() (map[uint64]string, error) {
	found := map[uint64]string{}
	entries, err := os.ReadDir(filepath.Join(g.path, homesDir))
	if isGone(err) {
		return found, nil
	}
	for _, e := range entries {
		if durable.IsTemp(e.Name()) {
			continue
		}
		data, err := readSmall(filepath.Join(g.path, homesDir, e.Name()))
		if err != nil {
			return found, err
		}
		home, _, _ := strings.Cut(string(data), "\n")
		found[homeNumber(home)] = string(data)
	}
	return found, err
}

// readFile returns the body that a record would have.
func (g *source) readFile(e entry) ([]byte, error) {
	switch e.kind {
	case record.Home:
		homes, err := g.homeFiles()
		return []byte(homes[e.hash]), err
	case record.Seal: // a line of 64 hexadecimal digits
		data, err := safeopen.ReadFile(g.fileOf(e), maxSmall, safeopen.NoFollow)
		if seal, failed := cas.ParseSeal(strings.TrimSuffix(string(data), "\n")); err == nil && failed == nil {
			return sealBody(seal), nil
		}
		if errors.As(err, new(*safeopen.NotFileError)) || errors.As(err, new(*safeopen.TooBigError)) {
			err = nil // damaged
		}
		return data, err
	}
	body, err := g.first.Read(protocol.HashOf(e.hash))
	if errors.Is(err, cas.ErrNotFound) { // since it was listed
		err = fmt.Errorf("%s: %w", g.fileOf(e), fs.ErrNotExist)
	}
	return body, err
}

// removeRedacted removes the files of nodes.
func (s *Store) removeRedacted(nodes []cas.Hash) error {
	if s.files.Layout == "" {
		return nil
	}
	for _, h := range nodes {
		err := s.fs.Remove(s.files.Path(h))
		if err == nil {
			err = s.fs.SyncDir(filepath.Dir(s.files.Path(h)))
		}
		if err != nil && !isGone(err) {
			return err
		}
	}
	return nil
}

// The files are removed by the second compaction, if a check of the store has found no fault in between.
const (
	checkedFile  = "nodes.checked"
	convertedDir = ".tmp-version-1" // what is being removed
)

// Checked records that a check has found no fault in the store.
func (s *Store) Checked() error {
	if s.files.Layout != original.Fan2 || s.foreign {
		return nil
	}
	v, err := s.refresh(true)
	if err != nil || len(v.sources) == 1 || !v.sources[len(v.sources)-2].name.isPack() {
		return err
	}
	if err := durable.WriteFile(s.fs, filepath.Join(s.dir, checkedFile), nil, s.filePerm()); !isPermission(err) {
		return err
	}
	return nil
}

// hideFiles atomically takes the files of our first version out of use, if everything needed was packed before
// and checked since. Writers must be stopped.
func (c *compaction) hideFiles() (done bool, err error) {
	s := c.store
	if _, err := os.Lstat(filepath.Join(s.dir, checkedFile)); err != nil || s.files.Layout == "" || c.packed > 0 {
		return false, nil //nolint:nilerr // it is not there
	}
	to := filepath.Join(s.dir, convertedDir)
	if err := s.fs.MkdirAll(to, 0o755); err != nil {
		return false, err
	}
	for _, name := range []string{nodesDir, sealsDir, homesDir} {
		if err := s.fs.Rename(filepath.Join(s.dir, name), filepath.Join(to, name)); err != nil && !isGone(err) {
			return false, err
		}
	}
	return true, nil
}
