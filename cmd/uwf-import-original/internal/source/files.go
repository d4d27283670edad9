package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// Index files of older versions, in the home. A version with variables imports them when it starts and
// appends ".migrated" to their names.
const (
	workflowsFile = "workflows.yaml"
	registryFile  = "registry.yaml" // as named in the documentation
	threadsYAML   = "threads.yaml"
	threadsJSON   = "threads.json"
	historyFile   = "history.jsonl"
	migrated      = ".migrated"
)

// maxFile bounds an index: a hundred thousand threads take a few megabytes.
const maxFile = 64 << 20

// readFiles reads the index of older versions. Files already converted to variables are read only if there
// are no variables. It returns the files that exist.
func (s *Source) readFiles(haveVariables bool) (there []string, err error) {
	for _, f := range []struct {
		name string
		read func(path string, data []byte) error
	}{
		{workflowsFile, s.readRegistry}, {registryFile, s.readRegistry},
		{threadsYAML, s.readThreads}, {threadsJSON, s.readThreads},
		{historyFile, s.readHistory},
	} {
		endings := []string{""}
		if !haveVariables {
			endings = append(endings, migrated)
		}
		for _, ending := range endings {
			path := filepath.Join(s.Home, f.name+ending)
			data, err := readFile(path)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			there = append(there, path)
			if err == nil {
				err = f.read(path, data)
			}
			if err != nil {
				s.problem("file", path, "%v", err)
			}
		}
	}
	return there, nil
}

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("it has %d bytes; the limit is %d", info.Size(), maxFile)
	}
	return os.ReadFile(path)
}

// mapping parses a YAML or JSON mapping, in order. Scalars are taken verbatim, because a hash may look like a
// number.
func mapping(path string, data []byte) ([]yamldoc.Entry, error) {
	doc, err := yamldoc.Parse(data, yamldoc.Bounds{Bytes: maxFile, Nodes: maxFile})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	switch {
	case doc.Root.Kind == yamldoc.Mapping:
		return doc.Root.Entries, nil
	case doc.Root.Kind == yamldoc.Scalar && doc.Root.Scalar == nil:
		return nil, nil
	}
	return nil, errors.New("not a mapping")
}

func (s *Source) readRegistry(path string, data []byte) error {
	entries, err := mapping(path, data)
	for _, e := range entries {
		if e.Value.Kind != yamldoc.Scalar {
			s.problem("workflow", e.Text, "%s has no valid hash for it", path)
			continue
		}
		s.Workflows = append(s.Workflows, Workflow{Name: e.Text, Hash: cas.Hash(e.Value.Text), From: path})
	}
	return err
}

// readThreads reads heads, or threads with their state.
func (s *Source) readThreads(path string, data []byte) error {
	entries, err := mapping(path, data)
	for _, e := range entries {
		t := Thread{ID: e.Text, From: path}
		text := func(key string) string {
			if n := e.Value.Get(key); n != nil && n.Kind == yamldoc.Scalar && n.Scalar != nil {
				return n.Text
			}
			return ""
		}
		switch e.Value.Kind {
		case yamldoc.Scalar:
			t.Head = cas.Hash(e.Value.Text)
		case yamldoc.Mapping:
			t.Head, t.Status, t.Message = cas.Hash(text("head")), text("status"), text("suspendMessage")
			t.CompletedAt = number(text("completedAt"))
		default:
			s.problem("thread", t.ID, "%s has neither a head nor a state for it", path)
			continue
		}
		s.Threads = append(s.Threads, t)
	}
	return err
}

// readHistory reads the ended threads. The last line of a thread counts.
func (s *Source) readHistory(path string, data []byte) error {
	last := map[string]Thread{}
	var order []string
	for n, line := range lines(data) {
		var e struct {
			Thread      string  `json:"thread"`
			Head        string  `json:"head"`
			CompletedAt float64 `json:"completedAt"`
			Reason      string  `json:"reason"`
		}
		if err := json.Unmarshal(line, &e); err != nil || e.Thread == "" {
			s.problem("file", path, "line %d is not an entry of the history", n)
			continue
		}
		if _, known := last[e.Thread]; !known {
			order = append(order, e.Thread)
		}
		last[e.Thread] = Thread{
			ID: e.Thread, Head: cas.Hash(e.Head), Status: reasonStatus(e.Reason),
			CompletedAt: int64(e.CompletedAt), From: path,
		}
	}
	for _, id := range order {
		s.Threads = append(s.Threads, last[id])
	}
	return nil
}
