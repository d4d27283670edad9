package fsstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/util/durable"
)

// Put implements [cas.Store]. It flushes nothing: a power cut may take the nodes
// away, or leave them torn. Nothing durable leads to them, so the next put writes
// them again, and a check of the store takes what is left for garbage. Errors:
// also those of the file system.
func (s *Store) Put(ctx context.Context, nodes ...cas.Node) error {
	return s.write(ctx, nodes, func(files []durable.File) error {
		return durable.WriteAll(s.fs, files, durable.None)
	})
}

// Commit implements [cas.Store]. How it flushes: [Store.FlushMode].
func (s *Store) Commit(ctx context.Context, nodes ...cas.Node) error {
	return s.write(ctx, nodes, s.commitFiles)
}

func (s *Store) write(ctx context.Context, nodes []cas.Node, how func([]durable.File) error) (err error) {
	if len(nodes) == 0 {
		return ctx.Err()
	}
	if err := s.makeFor(ctx, nodes); err != nil {
		return err
	}
	release, err := s.LockShared(ctx)
	if err != nil {
		return fmt.Errorf("write nodes: %w", err)
	}
	defer func() { err = errors.Join(err, release()) }()
	files, err := s.plan(ctx, nodes)
	if err != nil {
		return err
	}
	if err := s.writeFiles(files, how); err != nil {
		return fmt.Errorf("write nodes: %w", err)
	}
	return s.keepYoung(files)
}

// makeFor makes the store if there is none yet, but not for nodes that it would
// refuse.
func (s *Store) makeFor(ctx context.Context, nodes []cas.Node) error {
	if s.Exists() {
		return nil
	}
	if _, err := s.plan(ctx, nodes); err != nil {
		return err
	}
	if err := s.make(ctx, nodes[0].Timestamp); err != nil {
		return fmt.Errorf("make store: %w", err)
	}
	return nil
}

func (s *Store) writeFiles(files []durable.File, how func([]durable.File) error) error {
	if len(files) == 0 {
		return nil
	}
	if err := s.makeShards(files); err != nil {
		return err
	}
	return how(files)
}

// commitFiles makes files durable, with their names. One that a power cut has torn is known
// by its hash, and nothing durable names it yet.
func (s *Store) commitFiles(files []durable.File) error {
	mode := s.flush().mode
	if mode != durable.None && s.format.Layout == fan2 {
		if done, err := durable.WriteChecked(s.fs, files); done || err != nil {
			return err
		}
	}
	if err := durable.WriteAll(s.fs, files, mode); err != nil {
		return err
	}
	if mode == durable.Full && s.format.Layout == fan2 {
		return s.keepShards(files)
	}
	return nil
}

// keptFile is in each shard whose own name is known to be durable.
const keptFile = ".kept"

// keepShards makes the names of shards durable, once: of those made here, and of
// those that another process has made for a Put, which flushes no names.
func (s *Store) keepShards(files []durable.File) error {
	var marks []string
	for _, dir := range shardsOf(files) {
		mark := filepath.Join(dir, keptFile)
		if _, err := os.Lstat(mark); err != nil {
			marks = append(marks, mark)
		}
	}
	if len(marks) == 0 {
		return nil
	}
	if err := s.fs.SyncDir(filepath.Join(s.dir, nodesDir)); err != nil {
		return err
	}
	for _, mark := range marks {
		_ = s.fs.Append(mark, nil, 0o444, durable.NoFlush) // without it the next commit flushes again
	}
	return nil
}

// makeShards makes the directories of files. Their names are flushed after the
// files, together.
func (s *Store) makeShards(files []durable.File) error {
	if s.format.Layout != fan2 {
		return nil
	}
	missing := slices.DeleteFunc(slices.Clone(files), func(f durable.File) bool { return f.Present })
	for _, dir := range shardsOf(missing) {
		if err := s.fs.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// shardsOf are the directories of files, each once.
func shardsOf(files []durable.File) (dirs []string) {
	seen := map[string]bool{}
	for _, f := range files {
		if dir := filepath.Dir(f.Path); !seen[dir] {
			seen[dir], dirs = true, append(dirs, dir)
		}
	}
	return dirs
}

// plan compares nodes with what is there. It changes nothing, so that a refused
// node costs the others nothing.
func (s *Store) plan(ctx context.Context, nodes []cas.Node) (files []durable.File, err error) {
	planned := map[cas.Hash]cas.Node{}
	for _, n := range nodes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := s.format.Hash.Check(n); err != nil {
			return nil, err
		}
		if twin, ok := planned[n.Hash]; ok {
			if !twin.Equal(n) {
				return nil, &cas.CollisionError{Hash: n.Hash}
			}
			continue
		}
		planned[n.Hash] = n
		there, err := s.isThere(n)
		if err != nil {
			return nil, err
		}
		if there && s.isFoundation(n.Hash) {
			continue
		}
		f := durable.File{Path: s.path(n.Hash), Present: there}
		if there {
			f.Path = s.Path(n.Hash)
		} else {
			f.Data, f.Perm = cas.MarshalFile(n), nodePerm
		}
		files = append(files, f)
	}
	return files, nil
}

// isThere compares a node with its file. A file that is a torn write of this
// very node counts as missing: a power cut after a Put leaves such files, and
// nothing is lost by writing it again. Any other damage is reported.
func (s *Store) isThere(n cas.Node) (bool, error) {
	data, err := s.readFile(n.Hash)
	if errors.Is(err, cas.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	old, err := s.unmarshal(n.Hash, data)
	if redacted, ok := cas.AsRedacted(err); ok {
		// What was taken away here, on purpose, does not come back by the way.
		return !redacted.Tombstone.Foreign, nil
	}
	switch {
	case err != nil && isTorn(data, n):
		return false, nil
	case err != nil:
		return false, err
	case !old.Equal(n):
		return false, &cas.CollisionError{Hash: n.Hash}
	}
	return true, nil
}

// isTorn reports whether data is a part of the file of n, whatever its timestamp
// was: its beginning, then nothing, or zeros where blocks never reached the disk.
func isTorn(data []byte, n cas.Node) bool {
	n.Timestamp = 0 // one byte
	whole := cas.MarshalFile(n)
	body := whole[:len(whole)-1]
	same := 0
	for same < min(len(data), len(body)) && data[same] == body[same] {
		same++
	}
	rest := data[same:]
	if same == len(body) {
		const longestTimestamp = 9
		return len(rest) <= longestTimestamp
	}
	return len(bytes.Trim(rest, "\x00")) == 0
}

// How a Commit becomes durable, as format.json and [Options] say it.
const (
	flushAuto  = "auto"  // batch where that is known to be safe, else full
	flushFull  = "full"  // every file and every directory
	flushBatch = "batch" // one flush for all, relying on the file system's order
	flushNone  = "none"  // not at all: a power cut may lose or tear nodes, a kill does not
)

func knownFlush(mode string) bool {
	return mode == flushAuto || mode == flushFull || mode == flushBatch || mode == flushNone
}

type flushMode struct {
	mode durable.Mode
	why  string
}

// FlushMode is the mode in force: full, batch or none, and why.
func (s *Store) FlushMode() (mode, why string) {
	m := s.flush()
	return m.mode.String(), m.why
}

func (s *Store) chooseFlush() flushMode {
	switch s.format.Flush {
	case flushFull:
		return flushMode{durable.Full, "it is configured"}
	case flushBatch:
		return flushMode{durable.Batch, "it is configured"}
	case flushNone:
		return flushMode{durable.None, "it is configured"}
	}
	if s.home == "" {
		return flushMode{durable.Full, "the home directory is not known"}
	}
	mode, why := durable.SafeMode(s.dir, s.home)
	return flushMode{mode, why}
}

// Mend commits nodes in the place of damaged files, which go to the quarantine. The caller
// sees to it that nobody else mends meanwhile. Errors: those of [Store.Commit].
func (s *Store) Mend(ctx context.Context, nodes ...cas.Node) (err error) {
	release, err := s.LockShared(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	sole := Sole{store: s}
	for _, n := range nodes {
		if err := s.format.Hash.Check(n); err != nil {
			return err
		}
		var damaged *cas.CorruptError
		if _, err := s.isThere(n); !errors.As(err, &damaged) {
			continue // what else is wrong the commit says
		}
		if _, err := sole.Quarantine(s.Path(n.Hash)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return s.Commit(ctx, nodes...)
}

// keepYoung marks the files that were there already as wanted: by its time the
// collector sees that somebody relies on a node again. It comes after the flush,
// which a changed time would make dearer.
func (s *Store) keepYoung(files []durable.File) error {
	if s.format.Layout != fan2 {
		return nil
	}
	for _, f := range files {
		if !f.Present {
			continue
		}
		if err := s.renew(f.Path); err != nil {
			return fmt.Errorf("mark a node that is there already as wanted: %w", err)
		}
	}
	return nil
}

// renew makes a file young. Only the owner of a file may touch it: another
// member of a team that shares a store replaces it by a copy. Whoever may do neither
// cannot write here at all, so no node of his can rely on this one.
func (s *Store) renew(path string) error {
	err := s.fs.Touch(path)
	if !mayNot(err) {
		return err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	err = durable.WriteAll(s.fs, []durable.File{{Path: path, Data: data, Perm: nodePerm}}, durable.Full)
	if mayNot(err) {
		return nil
	}
	return err
}

func mayNot(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}
