package source

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/cas"
)

// Names of the variables that the original's uwf uses.
const (
	registryPrefix = "@uwf/registry/"
	threadPrefix   = "@uwf/thread/"
	historyPrefix  = "@uwf/history/" // ended threads, in intermediate versions
	ours           = "@uwf/"
)

// The files of variables and their directories, on which uwf and ocas of the original disagree.
const (
	databaseFile = "_store.db"
	linesFile    = "_vars.jsonl" // older versions
)

func variableDirs(store string) []string { return []string{filepath.Join(store, "vars"), store} }

// variable is a variable of the original. A name has one per type of value: the original removes the others,
// but may have been killed first.
type variable struct {
	Name    string            `json:"name"`
	Schema  string            `json:"schema"`
	Value   string            `json:"value"`
	Created int64             `json:"created"`
	Updated int64             `json:"updated"`
	Tags    map[string]string `json:"tags"`
	Op      string            `json:"__op"`

	from, damage string
}

// readVariables reads the variables and reports whether any files of them exist.
func (s *Source) readVariables(ctx context.Context) (found bool, err error) {
	var all []variable
	for _, dir := range variableDirs(s.Store) {
		vars, ok, err := s.variablesIn(ctx, dir)
		if err != nil {
			return false, err
		}
		found = found || ok
		all = append(all, vars...)
	}
	// The newest of a name first.
	slices.SortStableFunc(all, func(a, b variable) int { return int(b.Updated - a.Updated) })
	for _, v := range all {
		if v.damage != "" {
			s.problem("file", v.from, "%s", v.damage)
			continue
		}
		s.take(v)
	}
	return found, nil
}

// variablesIn reads a directory's database, or the log that preceded databases.
func (s *Source) variablesIn(ctx context.Context, dir string) ([]variable, bool, error) {
	database := filepath.Join(dir, databaseFile)
	ok, err := exists(database)
	if err != nil {
		return nil, false, err
	}
	if ok {
		vars, err := readDatabase(ctx, database)
		return vars, true, err
	}
	return s.variableLines(filepath.Join(dir, linesFile))
}

// take converts a variable to a workflow or thread.
func (s *Source) take(v variable) {
	if name, ok := strings.CutPrefix(v.Name, registryPrefix); ok {
		s.Workflows = append(s.Workflows, Workflow{Name: name, Hash: cas.Hash(v.Value), From: v.from})
		return
	}
	t := Thread{
		Head: cas.Hash(v.Value), Status: v.Tags["status"], Message: v.Tags["suspendMessage"],
		CompletedAt: number(v.Tags["completedAt"]), From: v.from,
	}
	if id, ok := strings.CutPrefix(v.Name, threadPrefix); ok {
		t.ID = id
		s.Threads = append(s.Threads, t)
	}
	if id, ok := strings.CutPrefix(v.Name, historyPrefix); ok {
		t.ID, t.Status = id, reasonStatus(v.Tags["reason"])
		s.Threads = append(s.Threads, t)
	}
}

// reasonStatus returns the status for a reason in an older history.
func reasonStatus(reason string) string {
	if reason == "cancelled" {
		return reason
	}
	return "completed"
}

func number(text string) int64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return int64(n)
}

// variableLines reads the variable log of older versions: the last line of a name and type counts.
func (s *Source) variableLines(path string) ([]variable, bool, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	type key struct{ name, schema string }
	last := map[key]variable{}
	var order []key
	for n, line := range lines(data) {
		var v variable
		if err := json.Unmarshal(line, &v); err != nil {
			s.problem("file", path, "line %d is damaged: %v", n, err)
			continue
		}
		k := key{v.Name, v.Schema}
		if _, known := last[k]; !known {
			order = append(order, k)
		}
		v.from = path
		last[k] = v
	}
	var vars []variable
	for _, k := range order {
		if v := last[k]; v.Op != "remove" && strings.HasPrefix(v.Name, ours) {
			vars = append(vars, v)
		}
	}
	return vars, true, nil
}

// lines yields the non-empty lines of a text with their numbers.
func lines(data []byte) func(yield func(int, []byte) bool) {
	return func(yield func(int, []byte) bool) {
		r := bufio.NewScanner(bytes.NewReader(data))
		r.Buffer(nil, len(data)+1)
		for n := 1; r.Scan(); n++ {
			if line := bytes.TrimSpace(r.Bytes()); len(line) > 0 && !yield(n, line) {
				return
			}
		}
	}
}
