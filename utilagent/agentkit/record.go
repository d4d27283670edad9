package agentkit

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/durable"
)

// record is what the kit knows of one session: what has gone into it. There is a
// small file for each, so that steps of different threads at once do not lose each
// other's. Losing one costs a full prompt, no more.
type record struct {
	Agent   string `json:"agent"`
	Session string `json:"session"`
	// Thread and Role are whose session it is. They alone add to it; others go on
	// in a copy.
	Thread string `json:"thread"`
	Role   string `json:"role"`
	// Step is the newest step that was made in it.
	Step cas.Hash `json:"step,omitempty"`
	// Try is what may have been added since. It is written, flushed, before that
	// can happen: a session that has gone on never looks as if it had not.
	Try   *try   `json:"try,omitempty"`
	Marks []mark `json:"marks,omitempty"` // oldest first
}

// try is an attempt at a step that has not been made yet, or never was.
type try struct {
	Head cas.Hash `json:"head"` // that the step was to follow
	Task string   `json:"task"` // edgeSum of its instruction
	// Begun: the agent has said that its work goes on in the session. Rejected is
	// why the answer could not be used.
	Begun    bool   `json:"begun,omitempty"`
	Rejected string `json:"rejected,omitempty"`
}

// mark is where a step ends in the session, in words of the agent.
type mark struct {
	Step cas.Hash `json:"step"`
	At   string   `json:"at"`
}

// maxMarks bounds a record: it is written with each step.
const maxMarks = 100

func (r record) belongs(thread, role string) bool { return r.Thread == thread && r.Role == role }

// endsAt reports whether a step is the last thing in the session.
func (r record) endsAt(step cas.Hash) bool { return r.Step == step && r.Try == nil }

// goesOn reports whether its owner can add to the session, at a head, after a step:
// what came since is nothing, or no more than an instruction at the same head that
// was not heard.
func (r record) goesOn(step, head cas.Hash) bool {
	return r.endsAt(step) || r.Step == step && !r.Try.Begun && r.Try.Rejected == "" && r.Try.Head == head
}

// mark is where a step ends in the session, "" if that is not known.
func (r record) mark(step cas.Hash) string {
	for _, m := range r.Marks {
		if m.Step == step {
			return m.At
		}
	}
	return ""
}

// of reports whether a try was one of this very step.
func (t try) of(head cas.Hash, task string) bool { return t.Head == head && t.Task == task }

// edgeSum tells one instruction from another. It is never empty.
func edgeSum(edge string) string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(edge)) // never fails
	return fmt.Sprintf("%016x", sum.Sum64())
}

// records is the directory of what is known of an agent's sessions.
type records struct{ dir, agent string }

func (k *kit) records() records {
	agent := protocol.AgentName(k.opts.Name)
	return records{dir: filepath.Join(k.run.Dirs.Sessions(), fileName(agent)), agent: agent}
}

// of reads the record of a session. One that is damaged, or another's, is as good
// as none.
func (r records) of(session string) (record, error) {
	var known record
	if session == "" {
		return record{}, nil
	}
	if err := load(r.path(session), &known); err != nil {
		return record{}, err
	}
	if known.Session != session || known.Agent != r.agent {
		return record{}, nil
	}
	return known, nil
}

// put writes a record. It is only a cache, and not flushed.
func (r records) put(known record) error {
	known.Agent = r.agent
	return durable.ReplaceJSON(durable.OS(), r.path(known.Session), known)
}

// secure writes a record so that it holds after a power cut, too.
func (r records) secure(known record) error {
	known.Agent = r.agent
	data, err := json.Marshal(known)
	if err != nil {
		return err
	}
	if err := durable.OS().MkdirAll(filepath.Dir(r.path(known.Session)), 0o700); err != nil {
		return err
	}
	return durable.WriteFile(durable.OS(), r.path(known.Session), append(data, '\n'), 0o600)
}

// path may not hold the id itself, which may be anything.
func (r records) path(session string) string {
	sum := fnv.New128a()
	_, _ = io.WriteString(sum, session)
	return filepath.Join(r.dir, "records", hex.EncodeToString(sum.Sum(nil))+".json")
}

// maxRecord bounds a file of ours.
const maxRecord = 1 << 20

// load reads a small file; one that is damaged, or no file, is as good as none.
func load[T any](path string, into *T) error {
	data, err := careful.ReadFile(path, maxRecord, careful.NoFollow)
	if errors.Is(err, fs.ErrNotExist) || errors.As(err, new(*careful.NotFileError)) || errors.As(err, new(*careful.TooBigError)) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("session: %w", err)
	}
	var read T
	if json.Unmarshal(data, &read) == nil {
		*into = read
	}
	return nil
}

// fileName keeps what every file system takes.
func fileName(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return '_'
	}, s)
	return s[:min(len(s), 60)]
}
