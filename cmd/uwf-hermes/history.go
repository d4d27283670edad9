package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/cliagent"
)

// errNoSession means that Hermes keeps no session of that id.
var errNoSession = errors.New("hermes keeps no session of that id")

// session is what Hermes keeps of a conversation. Its usage counts on over all
// runs.
type session struct {
	id, model string
	parent    string // the session that it was split off from, when it was compressed
	usage     *protocol.Usage
	messages  []message
}

// message is one of a session, as the JSON files have it and the database nearly.
type message struct {
	Role       string           `json:"role"`
	Content    cliagent.Content `json:"content"`
	Reasoning  string           `json:"reasoning"`
	ToolCallID string           `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments any    `json:"arguments"` // JSON as text, in some versions the value
		} `json:"function"`
	} `json:"tool_calls"`

	at float64 // seconds since 1970; 0: not known
}

// archive is where Hermes keeps sessions: a file each, in versions or settings that
// write them, and a database.
type archive struct{ home string }

// load reads a session from wherever it is. Errors: errNoSession if Hermes has no
// such session; isMissing if it keeps nothing at all, as in a home that is not
// ours to see.
func (a archive) load(ctx context.Context, id string) (session, error) {
	s, err := a.file(id)
	if err == nil {
		return s, nil
	}
	if !isMissing(err) {
		return s, err
	}
	db, err := openStateDB(ctx, filepath.Join(a.home, "state.db"))
	if isMissing(err) {
		if _, err := os.Stat(filepath.Join(a.home, "sessions")); err == nil {
			return s, errNoSession
		}
	}
	if err != nil {
		return s, err
	}
	s, err = db.load(ctx, id)
	return s, errors.Join(err, db.close())
}

// file reads sessions/session_<id>.json.
func (a archive) file(id string) (session, error) {
	if id == "" || strings.ContainsAny(id, `/\`) {
		return session{}, errNoSession
	}
	path := filepath.Join(a.home, "sessions", "session_"+id+".json")
	data, err := os.ReadFile(path)
	if err != nil {
		return session{}, err
	}
	var content struct {
		Model    string    `json:"model"`
		Parent   string    `json:"parent_session_id"`
		Messages []message `json:"messages"`
	}
	if err := json.Unmarshal(data, &content); err != nil {
		return session{}, fmt.Errorf("%s: %w", path, err)
	}
	return session{id: id, model: content.Model, parent: content.Parent, messages: content.Messages}, nil
}

// maxSplits is how often a session may have been split to be followed back.
const maxSplits = 16

// since are the messages after a prompt: what one run has added. A session that
// was split in the run has its beginning in those that it was split off from.
func (a archive) since(ctx context.Context, s session, prompt string) []message {
	list, oldest := s.messages, s
	for range maxSplits {
		if i := lastOf(list, prompt); i >= 0 {
			return list[i+1:]
		}
		if oldest.parent == "" {
			break
		}
		parent, err := a.load(ctx, oldest.parent)
		if err != nil {
			break // its beginning is gone: what is there has to do
		}
		list, oldest = slices.Concat(parent.messages, list), parent
	}
	// Hermes may have wrapped the prompt: then it is the newest that a user said.
	for i, m := range slices.Backward(s.messages) {
		if m.Role == "user" {
			return s.messages[i+1:]
		}
	}
	return s.messages
}

// lastOf is the place of the newest message that is the prompt, or -1.
func lastOf(list []message, prompt string) int {
	prompt = strings.TrimSpace(prompt)
	for i, m := range slices.Backward(list) {
		if m.Role == "user" && strings.TrimSpace(string(m.Content)) == prompt {
			return i
		}
	}
	return -1
}

// descends reports whether a session goes on from another one.
func (a archive) descends(ctx context.Context, s session, from string) bool {
	for range maxSplits {
		if s.id == from || s.parent == from {
			return true
		}
		if s.parent == "" {
			return false
		}
		parent, err := a.load(ctx, s.parent)
		if err != nil {
			return false
		}
		s = parent
	}
	return false
}

// turns are messages as the step keeps them: the model's, and what tools returned.
func turns(list []message) []protocol.Turn {
	var out []protocol.Turn
	for _, m := range list {
		t := protocol.Turn{Content: string(m.Content), Reasoning: m.Reasoning, ToolCallID: m.ToolCallID, AtMs: int64(m.at * 1000)}
		switch m.Role {
		case "assistant":
			t.Role = protocol.TurnAssistant
		case "tool":
			t.Role = protocol.TurnTool
		default:
			continue
		}
		for _, c := range m.ToolCalls {
			t.ToolCalls = append(t.ToolCalls, protocol.ToolCall{ID: c.ID, Name: c.Function.Name, Args: cliagent.Arguments(c.Function.Arguments)})
		}
		out = append(out, t)
	}
	return out
}
