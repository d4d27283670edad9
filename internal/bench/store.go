package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/internal/bench/sample"
	"github.com/united-workforce/uwf/protocol"
)

// storeBench has the stores, ours and git's, that hold the same contents.
type storeBench struct {
	*bench
	git, put    string // programs
	ours, gits  string // 10,000 nodes, and as many loose objects
	small, huge string // stores of 1,000 and of 100,000 nodes
	few, many   []string
	next        int // number of the next node that was never put
	bulk        int // directories of bulk puts so far
}

const (
	fsckNodes  = 10_000
	bulkNodes  = 10_000
	heavy      = 5 // rounds of what takes seconds
	gitAllSafe = "core.fsync=all"
)

// storeRows are the promises of the store, side by side with git.
func (b *bench) storeRows(ctx context.Context) ([]row, error) {
	s := &storeBench{bench: b, next: 1_000_000}
	if err := s.prepareStores(ctx); err != nil {
		return nil, err
	}
	return []row{
		{
			name: "ocas get among 100,000", against: "ocas get among 1,000", promise: 1.3,
			subject: func() error { return s.get(s.huge) }, anchor: func() error { return s.get(s.small) },
		},
		{
			name: "durable put of 4 nodes", against: "git hash-object -w of 4 files, all flushed", promise: 1,
			before: s.fourFiles, subject: func() error { return s.commit(s.ours, len(s.few)) },
			anchor: func() error { return s.hashObject(s.gits, s.few) },
		},
		{
			name: "durable put of 10,000 nodes", against: "git hash-object --stdin-paths -w, all flushed", promise: 0.2, rounds: heavy,
			before: s.newBulk, subject: func() error { return s.commit(s.bulkDir("ours"), bulkNodes) },
			anchor: func() error { return s.hashObject(s.bulkDir("git"), s.many) },
		},
		{
			name: "ocas fsck of 10,000 nodes", against: "git fsck of as many loose objects", promise: 1, rounds: 2 * heavy,
			subject: func() error { return s.ocas(s.ours, "fsck") },
			anchor:  func() error { return s.inGit(s.gits, nil, "fsck", "--no-dangling") },
		},
	}, nil
}

func (s *storeBench) prepareStores(ctx context.Context) error {
	var err error
	if s.git, err = exec.LookPath("git"); err != nil {
		return fmt.Errorf("git is what the store is compared with: %w", err)
	}
	s.put = filepath.Join(s.dir, "put")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", s.put, "github.com/united-workforce/uwf/internal/bench/put").CombinedOutput(); err != nil {
		return fmt.Errorf("build put: %w: %s", err, out)
	}
	s.ours, s.gits = filepath.Join(s.dir, "ours"), filepath.Join(s.dir, "gits")
	if err := s.fill(ctx, s.ours, fsckNodes); err != nil {
		return err
	}
	if s.small, err = s.filled(ctx, "thousand", 1000); err != nil {
		return err
	}
	if s.huge, err = s.filled(ctx, "hundred-thousand", 100_000); err != nil {
		return err
	}
	if s.many, err = s.files(bulkNodes); err != nil {
		return err
	}
	if err := s.initGit(s.gits); err != nil {
		return err
	}
	return s.inGit(s.gits, s.many, "hash-object", "-w", "--stdin-paths")
}

// fill puts nodes without flushing them.
func (s *storeBench) fill(ctx context.Context, dir string, n int) error {
	store, err := fsstore.Open(ctx, dir, fsstore.Options{Flush: "none"})
	if err != nil {
		return err
	}
	b := cas.NewBatch(store, time.Now, nil)
	for i := range n {
		if _, err := b.Add(ctx, protocol.Text(sample.Text(i))); err != nil {
			return err
		}
	}
	return b.Put(ctx)
}

func (s *storeBench) filled(ctx context.Context, name string, n int) (string, error) {
	dir := filepath.Join(s.dir, name)
	return dir, s.fill(ctx, dir, n)
}

// files writes the contents of nodes for git to read.
func (s *storeBench) files(n int) ([]string, error) {
	dir := filepath.Join(s.dir, "files")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var paths []string
	for i := range n {
		path := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(path, []byte(sample.Text(i)), 0o644); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// fourFiles writes what was never put.
func (s *storeBench) fourFiles() error {
	s.few = nil
	for i := range 4 {
		path := filepath.Join(s.dir, fmt.Sprint("few", i))
		if err := os.WriteFile(path, []byte(sample.Text(s.next+i)), 0o644); err != nil {
			return err
		}
		s.few = append(s.few, path)
	}
	s.next += len(s.few)
	return nil
}

// newBulk makes empty stores for a bulk put.
func (s *storeBench) newBulk() error {
	s.bulk++
	if err := s.commit(s.bulkDir("ours"), 1); err != nil {
		return err
	}
	return s.initGit(s.bulkDir("git"))
}

func (s *storeBench) bulkDir(whose string) string {
	return filepath.Join(s.dir, fmt.Sprint("bulk-", whose, s.bulk))
}

// commit puts new nodes in a process of its own.
func (s *storeBench) commit(dir string, n int) error {
	first := s.next
	s.next += n
	return output(exec.Command(s.put, dir, fmt.Sprint(n), fmt.Sprint(first)))
}

// get reads a node that all stores have.
func (s *storeBench) get(dir string) error {
	payload, err := cas.Encode(sample.Text(0))
	if err != nil {
		return err
	}
	return s.ocas(dir, "get", string(cas.XXH3.Sum(cas.XXH3.KindHash(protocol.KindText), payload)))
}

func (s *storeBench) ocas(dir string, args ...string) error {
	cmd := exec.Command(s.uwf, append([]string{"--ocas-home", dir, "--home", filepath.Join(s.dir, "nobody"), "cas"}, args...)...)
	return output(cmd)
}

func (s *storeBench) initGit(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return s.inGit(dir, nil, "init", "-q")
}

// hashObject puts files durably.
func (s *storeBench) hashObject(dir string, paths []string) error {
	if len(paths) < bulkNodes {
		return s.inGit(dir, nil, append([]string{"-c", gitAllSafe, "hash-object", "-w"}, paths...)...)
	}
	return s.inGit(dir, paths, "-c", gitAllSafe, "hash-object", "-w", "--stdin-paths")
}

// inGit runs git; lines go to its stdin.
func (s *storeBench) inGit(dir string, lines []string, args ...string) error {
	cmd := exec.Command(s.git, args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(strings.Join(lines, "\n"))
	return output(cmd)
}

// output runs a command whose output nobody needs unless it fails.
func output(cmd *exec.Cmd) error {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, out.String())
	}
	return nil
}
