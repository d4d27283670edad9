// Package source reads what the original has left on a disk: its nodes, and what
// it knew by name. It changes nothing there, not even a file beside a database:
// what must be opened to be read is copied first.
package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/protocol"
)

// ErrNone means that there is nothing of the original's.
var ErrNone = errors.New("nothing of the original's is there")

// Dirs is where the original keeps things.
type Dirs struct {
	Store string // nodes and variables, ~/.ocas
	Home  string // config, and the index of older versions, ~/.uwf
}

// Source is an original's data. Its nodes are read when they are asked for.
type Source struct {
	Dirs
	Nodes *fsstore.Store
	// Workflows by name, and threads by id; of two that have one name, the first
	// is the one that the newer program wrote.
	Workflows []Workflow
	Threads   []Thread
	// Problems are what could not be read.
	Problems []Problem
}

// Workflow is a name of the registry.
type Workflow struct {
	Name string
	Hash cas.Hash
	From string // the file that says so
}

// Thread is a thread as the original knew it.
type Thread struct {
	ID          string
	Head        cas.Hash
	Status      string // completed, end, cancelled, suspended; "": idle
	CompletedAt int64  // ms; 0: not known
	Message     string // why it is suspended
	From        string // the file that says so
}

// Ended is how the thread has ended, "" if it has not.
func (t Thread) Ended() protocol.Status {
	switch t.Status {
	case "completed", "end":
		return protocol.StatusCompleted
	case "cancelled":
		return protocol.StatusCancelled
	}
	return ""
}

// Problem is something that cannot be brought.
type Problem struct {
	What   string `json:"what"` // thread, workflow, config or file
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Open reads what the original knew by name. Errors: [ErrNone]; a database that
// cannot be read, or is being written to.
func Open(ctx context.Context, d Dirs) (*Source, error) {
	nodes, err := openNodes(ctx, d.Store)
	if err != nil {
		return nil, err
	}
	s := &Source{Dirs: d, Nodes: nodes}
	found, err := s.readVariables(ctx)
	if err != nil {
		return nil, err
	}
	files, err := s.readFiles(found)
	if err != nil {
		return nil, err
	}
	if !found && len(files) == 0 {
		return nil, fmt.Errorf("%w: there are nodes in %s, but nothing that names a workflow or a thread: no %s in %s, and no index in %s",
			ErrNone, d.Store, databaseFile, filepath.Join(d.Store, "vars"), d.Home)
	}
	if !found && slices.ContainsFunc(files, func(path string) bool { return strings.HasSuffix(path, migrated) }) {
		s.problem("file", filepath.Join(d.Store, "vars", databaseFile),
			"it is not there, although the index was once taken over into it: only what the files of before say is known")
	}
	// The order within a name stays: what the newer program wrote comes first.
	slices.SortStableFunc(s.Workflows, func(a, b Workflow) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(s.Threads, func(a, b Thread) int { return cmp.Compare(a.ID, b.ID) })
	return s, nil
}

func openNodes(ctx context.Context, dir string) (*fsstore.Store, error) {
	if _, err := os.Stat(filepath.Join(dir, "format.json")); err == nil {
		return nil, fmt.Errorf("%s is a store of uwf itself, not of the original: %w", dir, ErrNone)
	}
	nodes, err := fsstore.Open(ctx, dir, fsstore.Options{})
	if err != nil {
		return nil, err
	}
	if !nodes.Originals() {
		return nil, fmt.Errorf("%w: there are no nodes in %s", ErrNone, dir)
	}
	return nodes, nil
}

// exists reports whether there is a file.
func exists(path string) (bool, error) {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (s *Source) problem(what, name, format string, args ...any) {
	s.Problems = append(s.Problems, Problem{What: what, Name: name, Reason: fmt.Sprintf(format, args...)})
}
