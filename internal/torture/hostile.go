package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	// slowest and largest are limits that no command may exceed, whatever its input.
	slowest = 10 * time.Second // processor time; generous, since machines differ
	largest = 200 << 20        // bytes
)

// hostile damages files that people and other programs can write. Every command must end soon and within
// bounds, with a useful error or a correct answer.
func hostile(ctx context.Context, t *trial) error {
	var s *stage
	for t.time(ctx) {
		var err error
		if s, err = t.stage(ctx, s); err != nil {
			return err
		}
		if err := s.damaged(ctx, t.random); err != nil {
			return err
		}
		t.rounds++
	}
	return nil
}

// readers are commands that read the files, with their arguments.
func (s *stage) readers() [][]string {
	return [][]string{
		{"thread", "list", "--all"}, {"thread", "show", s.base}, {"thread", "steps", s.base}, {"thread", "read", s.base},
		{"thread", "show", "@"}, {"workflow", "list"}, {"workflow", "validate", s.path("loop.yaml")}, {"cas", "fsck"},
		s.stepArgs(s.base), {"thread", "start", s.path("loop.yaml"), "-p", "x", "--cwd", s.dir},
	}
}

// damaged damages one file, runs one command, and repairs the file.
func (s *stage) damaged(ctx context.Context, random *rand.Rand) error {
	files, err := s.files()
	if err != nil {
		return err
	}
	path := files[random.IntN(len(files))]
	readers := s.readers()
	args := readers[random.IntN(len(readers))]
	appended := slices.Contains([]string{".jsonl", ".seg"}, filepath.Ext(path))
	if appended && (args[1] == "start" || args[1] == "step") {
		return nil // if the damage is harmless, it adds a record, which the old content lacks
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	broken := string(damage(random, whole))
	if random.IntN(3) == 0 {
		broken, err = odd(random, path)
	} else {
		err = replace(path, []byte(broken))
	}
	if err != nil {
		return err
	}
	e, runErr := s.uwf(ctx, args...)
	if err := replace(path, whole); err != nil {
		return err
	}
	if runErr == nil {
		runErr = bounded(e)
	}
	if runErr != nil {
		return fmt.Errorf("with %s damaged to %q: %w", path, head(broken), runErr)
	}
	return s.sound(ctx, &promise{})
}

// bounded checks the limits of every command.
func bounded(e ended) error {
	if e.CPU > slowest || e.Memory > largest {
		return fmt.Errorf("takes %s and %d MB: %s", e.CPU, e.Memory>>20, e)
	}
	allowed := []int{0, 1, exitUsage, exitMissing, exitInvalid, exitAgent, exitWaiting, exitCorrupt, exitLocked}
	if !slices.Contains(allowed, e.Code) {
		return fmt.Errorf("an exit status that is not in the docs: %s", e)
	}
	return nil
}

// files lists everything that can be damaged: the home, the store, and the workflow.
func (s *stage) files() ([]string, error) {
	files := []string{s.path("loop.yaml")}
	err := filepath.WalkDir(s.home, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && filepath.Ext(path) != ".lock" {
			files = append(files, path)
		}
		return err
	})
	return files, err
}

// replace writes a file, removing whatever is in its place.
func replace(path string, data []byte) error {
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

// damage changes a text in one of the usual ways.
func damage(random *rand.Rand, text []byte) []byte {
	out := bytes.Clone(text)
	at := random.IntN(len(out) + 1)
	switch random.IntN(9) {
	case 0:
		return out[:at]
	case 1:
		return append(out, out...)
	case 2:
		return slices.Insert(out, at, byte(random.IntN(256)))
	case 3:
		if at < len(out) {
			out[at] ^= 1 << random.IntN(8)
		}
		return out
	case 4:
		return bytes.Repeat([]byte("["), 1+random.IntN(300_000))
	case 5:
		return make([]byte, random.IntN(1<<20))
	case 6:
		return slices.Insert(out, at, []byte("\n<<<<<<< ours\n")...)
	case 7:
		return slices.Insert(out, at, bytes.Repeat([]byte("a: &a [*a, *a]\n"), 1+random.IntN(5000))...)
	default:
		lines := bytes.SplitAfter(out, []byte("\n"))
		random.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		return bytes.Join(lines, nil)
	}
}
