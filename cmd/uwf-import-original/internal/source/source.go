// Package source reads the original's data: its nodes, and the names it knew. It changes nothing on disk:
// files that opening would modify are copied first.
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

// ErrNone reports that there is no data of the original.
var ErrNone = errors.New("no data of the original found")

// Dirs are the original's directories.
type Dirs struct {
	Store string // nodes and variables, ~/.ocas
	Home  string // config, and the index of older versions, ~/.uwf
}

// Source is an original's data. Nodes are read on demand.
type Source struct {
	Dirs
	Nodes *fsstore.Store
	// Workflows by name, and threads by ID. If a name occurs twice, the entry from the newer program comes
	// first.
	Workflows []Workflow
	Threads   []Thread
	// Problems lists what could not be read.
	Problems []Problem
}

// Workflow is a registry entry.
type Workflow struct {
	Name string
	Hash cas.Hash
	From string // the file that contains it
}

// Thread is a thread of the original.
type Thread struct {
	ID          string
	Head        cas.Hash
	Status      string // completed, end, cancelled, suspended; "" if idle
	CompletedAt int64  // in ms; 0 if unknown
	Message     string // reason for the suspension
	From        string // the file that contains it
}

// Ended returns the thread's final status, or "" if it has not ended.
func (t Thread) Ended() protocol.Status {
	switch t.Status {
	case "completed", "end":
		return protocol.StatusCompleted
	case "cancelled":
		return protocol.StatusCancelled
	}
	return ""
}

// Problem describes something that cannot be imported.
type Problem struct {
	What   string `json:"what"` // thread, workflow, config or file
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Open reads the original's names. It returns [ErrNone], or an error if a database cannot be read or is being
// written.
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
		return nil, fmt.Errorf("%w: %s has nodes, but no workflow or thread: no %s in %s, and no index in %s",
			ErrNone, d.Store, databaseFile, filepath.Join(d.Store, "vars"), d.Home)
	}
	if !found && slices.ContainsFunc(files, func(path string) bool { return strings.HasSuffix(path, migrated) }) {
		s.problem("file", filepath.Join(d.Store, "vars", databaseFile),
			"missing, although the index was moved to it; only older files were read")
	}
	// A stable sort keeps entries of the newer program first.
	slices.SortStableFunc(s.Workflows, func(a, b Workflow) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(s.Threads, func(a, b Thread) int { return cmp.Compare(a.ID, b.ID) })
	return s, nil
}

func openNodes(ctx context.Context, dir string) (*fsstore.Store, error) {
	if _, err := os.Stat(filepath.Join(dir, "format.json")); err == nil {
		return nil, fmt.Errorf("%s is a store of uwf, not of the original: %w", dir, ErrNone)
	}
	nodes, err := fsstore.Open(ctx, dir, fsstore.Options{})
	if err != nil {
		return nil, err
	}
	if !nodes.Originals() {
		return nil, fmt.Errorf("%w: no nodes in %s", ErrNone, dir)
	}
	return nodes, nil
}

// exists reports whether a file exists.
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
