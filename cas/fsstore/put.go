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

// Put implements [cas.Store]. It flushes nothing, so a power cut can remove or damage the nodes. Nothing
// durable references them: the next put writes them again, and a check of the store treats the remains as
// garbage. It also returns errors of the file system.
func (s *Store) Put(ctx context.Context, nodes ...cas.Node) error {
	return s.write(ctx, nodes, func(files []durable.File) error {
		return durable.WriteAll(s.fs, files, durable.None)
	})
}

// Commit implements [cas.Store]. It flushes according to [Store.FlushMode].
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

// makeFor creates the store if necessary, but not for nodes that it would reject.
func (s *Store) makeFor(ctx context.Context, nodes []cas.Node) error {
	if s.Exists() {
		return nil
	}
	if _, err := s.plan(ctx, nodes); err != nil {
		return err
	}
	if err := s.make(ctx, nodes[0].Timestamp); err != nil {
		return fmt.Errorf("create store: %w", err)
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

// commitFiles makes files and their names durable. A file damaged by a power cut is detected by its hash, and
// nothing durable references it yet.
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

// keptFile is created in each shard whose own name is known to be durable.
const keptFile = ".kept"

// keepShards makes the names of shards durable, once: of those created here, and of those created by another
// process for a Put, which doesn't flush names.
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

// makeShards creates the directories of files. Their names are flushed together after the files.
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

// shardsOf returns the distinct directories of files.
func shardsOf(files []durable.File) (dirs []string) {
	seen := map[string]bool{}
	for _, f := range files {
		if dir := filepath.Dir(f.Path); !seen[dir] {
			seen[dir], dirs = true, append(dirs, dir)
		}
	}
	return dirs
}

// plan compares nodes with existing ones. It changes nothing, so that a rejected node doesn't affect the
// others.
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
		there, err := s.exists(n)
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

// exists compares a node with its file. A torn write of the same node counts as missing: it is left by a
// power cut after a Put, and writing it again loses nothing. Any other damage is reported.
func (s *Store) exists(n cas.Node) (bool, error) {
	data, err := s.readFile(n.Hash)
	if errors.Is(err, cas.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	old, err := s.unmarshal(n.Hash, data)
	if redacted, ok := cas.AsRedacted(err); ok {
		// A local redaction is intentional and must not be undone by a put.
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

// isTorn reports whether data is a torn write of n with any timestamp: its beginning, followed by nothing or
// by zeros for blocks that never reached the disk.
func isTorn(data []byte, n cas.Node) bool {
	n.Timestamp = 0 // encoded as one byte
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

// Flush modes of a Commit, in format.json and [Options].
const (
	flushAuto  = "auto"  // batch where known to be safe, otherwise full
	flushFull  = "full"  // every file and every directory
	flushBatch = "batch" // one flush for all, relying on the file system's ordering
	flushNone  = "none"  // no flush: a power cut can lose or damage nodes, a kill can't
)

func knownFlush(mode string) bool {
	return mode == flushAuto || mode == flushFull || mode == flushBatch || mode == flushNone
}

type flushMode struct {
	mode   durable.Mode
	reason string
}

// FlushMode returns the mode in force, full, batch or none, and the reason.
func (s *Store) FlushMode() (mode, why string) {
	m := s.flush()
	return m.mode.String(), m.reason
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
		return flushMode{durable.Full, "the home directory is unknown"}
	}
	mode, why := durable.SafeMode(s.dir, s.home)
	return flushMode{mode, why}
}

// Repair replaces damaged files of nodes, and moves them to the quarantine. The caller must ensure that no
// other process does the same. It returns the errors of [Store.Commit].
func (s *Store) Repair(ctx context.Context, nodes ...cas.Node) (err error) {
	release, err := s.LockShared(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	sole := Exclusive{store: s}
	for _, n := range nodes {
		if err := s.format.Hash.Check(n); err != nil {
			return err
		}
		var damaged *cas.CorruptError
		if _, err := s.exists(n); !errors.As(err, &damaged) {
			continue // the commit reports other errors
		}
		if _, err := sole.Quarantine(s.Path(n.Hash)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return s.Commit(ctx, nodes...)
}

// keepYoung updates the times of existing files, by which the collector sees that a node is needed again. It
// runs after the flush, which a changed time would make more expensive.
func (s *Store) keepYoung(files []durable.File) error {
	if s.format.Layout != fan2 {
		return nil
	}
	for _, f := range files {
		if !f.Present {
			continue
		}
		if err := s.renew(f.Path); err != nil {
			return fmt.Errorf("update the time of an existing node: %w", err)
		}
	}
	return nil
}

// renew updates the time of a file. Only the owner can do that: another member of a team that shares a store
// replaces the file by a copy. A user who can do neither can't write here at all, so none of their nodes can
// rely on this one.
func (s *Store) renew(path string) error {
	err := s.fs.Touch(path)
	if !isPermission(err) {
		return err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	err = durable.WriteAll(s.fs, []durable.File{{Path: path, Data: data, Perm: nodePerm}}, durable.Full)
	if isPermission(err) {
		return nil
	}
	return err
}

func isPermission(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}
